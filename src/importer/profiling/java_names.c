/* Reads Java names: printed methods, wrapped classes, packages in the paths of files. */
#include "importer/profiling/profiling_internal.h"

struct slice java_method_name(struct slice printed)
{
    const uint8_t *open = printed.len ? memchr(printed.p, '(', printed.len) : NULL;
    size_t end = open ? (size_t)(open - printed.p) : printed.len, start = end;
    while (start && printed.p[start - 1] != ' ')
        start--;
    return slice_of(printed.p + start, end - start);
}

static bool starts_with(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && !memcmp(s.p, prefix, n);
}

static struct slice drop(struct slice s, size_t n)
{
    return slice_of(s.p + n, s.len - n);
}

struct slice java_bare_class(struct slice name)
{
    static const char wrapped[] = "java.lang.Class<";
    if (starts_with(name, wrapped) && name.p[name.len - 1] == '>')
        name = slice_of(name.p + sizeof wrapped - 1, name.len - sizeof wrapped);
    while (name.len >= 2 && !memcmp(name.p + name.len - 2, "[]", 2))
        name.len -= 2;
    return name;
}

/* The first part of a path, and what comes after its slash. */
static struct slice first_part(struct slice path, struct slice *rest)
{
    const uint8_t *slash = path.len ? memchr(path.p, '/', path.len) : NULL;
    size_t n = slash ? (size_t)(slash - path.p) : path.len;
    *rest = slash ? drop(path, n + 1) : slice_of(path.p + n, 0);
    return slice_of(path.p, n);
}

/* What comes with the system is in no folder of its package's name. */
static const struct {
    const char *file, *package;
    bool anywhere; /* in the path; else it begins so */
} system_packages[] = {
    {"/system_ext/priv-app/SystemUIGoogle/SystemUIGoogle.apk", "com.android.systemui", false},
    {"/product/priv-app/Phonesky/Phonesky.apk", "com.android.vending", false},
    {"/product/app/Maps/Maps.apk", "com.google.android.apps.maps", false},
    {"/system_ext/priv-app/NexusLauncherRelease/NexusLauncherRelease.apk", "com.google.android.apps.nexuslauncher",
     false},
    {"/product/app/Photos/Photos.apk", "com.google.android.apps.photos", false},
    {"/product/priv-app/WellbeingPrebuilt/WellbeingPrebuilt.apk", "com.google.android.apps.wellbeing", false},
    {"MatchMaker", "com.google.android.as", true},
    {"/product/app/PrebuiltGmail/PrebuiltGmail.apk", "com.google.android.gm", false},
    {"/product/priv-app/PrebuiltGmsCore/PrebuiltGmsCore", "com.google.android.gms", false},
    {"/product/priv-app/Velvet/Velvet.apk", "com.google.android.googlequicksearchbox", false},
    {"/product/app/LatinIMEGooglePrebuilt/LatinIMEGooglePrebuilt.apk", "com.google.android.inputmethod.latin", false},
    {"/product/app/PrebuiltBugle/PrebuiltBugle.apk", "com.google.android.apps.messaging", false},
};

/* Where `text` is in a path; NULL: nowhere. */
static const uint8_t *find_text(struct slice path, const char *text)
{
    return path.len ? memmem(path.p, path.len, text, strlen(text)) : NULL;
}

static strid package_of_system(struct machine_ctx *m, struct slice path)
{
    for (size_t i = 0; i < sizeof system_packages / sizeof *system_packages; i++) {
        bool is = system_packages[i].anywhere ? find_text(path, system_packages[i].file) != NULL
                                              : starts_with(path, system_packages[i].file);
        if (is)
            return import_str(m->im, system_packages[i].package);
    }
    return 0;
}

/* Installed applications are in "/data/app/PACKAGE-XYZ/…", since Android 11 in "/data/app/~~ABC/PACKAGE-XYZ/…"; code
 * that was unpacked into memory names the file it comes from: "[anon:dalvik-classes.dex extracted in memory from …". */
strid package_of_path(struct machine_ctx *m, struct slice path, bool *bad)
{
    static const char installed[] = "/data/app/", unpacked[] = "dex extracted in memory from /data/app/";
    strid known = package_of_system(m, path);
    if (known)
        return known;
    const uint8_t *from = find_text(path, unpacked);
    if (!starts_with(path, installed)) {
        if (!from)
            return 0;
        path = drop(path, (size_t)(from - path.p) + sizeof unpacked - sizeof installed);
    }
    struct slice rest, part = first_part(drop(path, sizeof installed - 1), &rest);
    if (starts_with(part, "~~"))
        part = first_part(rest, &rest);
    const uint8_t *dash = part.len ? memchr(part.p, '-', part.len) : NULL; /* no package has one in its name */
    if (!dash) {
        *bad = true;
        return 0;
    }
    return import_slice(m->im, slice_of(part.p, (size_t)(dash - part.p)));
}
