/* The binary. */
#include "capture/common/applet.h"

int main(int argc, char **argv)
{
    return tracebox_main(argc, argv);
}
