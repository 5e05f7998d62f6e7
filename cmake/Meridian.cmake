# Build helpers: warning flags, and libraries that can include only what they declare.

add_library(meridian_flags INTERFACE)
target_compile_definitions(meridian_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64 MERIDIAN_VERSION="${PROJECT_VERSION}")
target_compile_options(meridian_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wpointer-arith -Wwrite-strings -Wvla -fno-common -ffunction-sections -fdata-sections)
target_link_options(meridian_flags INTERFACE -Wl,--gc-sections)
# Pointers to what is gone are errors in every build: at -O3 their memory gets other uses.
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  target_compile_options(meridian_flags INTERFACE -Werror=return-stack-address -Werror=dangling)
else()
  target_compile_options(meridian_flags INTERFACE -Werror=return-local-addr)
  if(CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    target_compile_options(meridian_flags INTERFACE -Wdangling-pointer=2 -Werror=dangling-pointer -Werror=use-after-free)
  endif()
endif()
# What makes a hole harder to use: checks of the C library's copies, canaries, programs and their tables at addresses that
# nobody knows and nobody may write to, and indirect jumps that land where they should. Sanitizers see more than the first.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
# Sanitizers note something about each check they make: to relocate it takes a fifth of the time of a short run.
set(MERIDIAN_PIE ON)
if(MERIDIAN_SANITIZE)
  set(MERIDIAN_PIE OFF)
endif()
target_compile_options(meridian_flags INTERFACE -fPIE -fstack-protector-strong) # -fPIC would keep calls from being inlined
target_link_options(meridian_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
check_c_compiler_flag(-fcf-protection MERIDIAN_HAS_CF_PROTECTION)
if(MERIDIAN_HAS_CF_PROTECTION AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(meridian_flags INTERFACE -fcf-protection)
endif()
if(NOT MERIDIAN_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "Rel")
  # 3 knows the sizes of more objects; compilers that lack it take it for 2 and warn
  set(level 2)
  if((CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12) OR
     (CMAKE_C_COMPILER_ID MATCHES "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_GREATER_EQUAL 12))
    set(level 3)
  endif()
  target_compile_options(meridian_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
endif()
# Structs that are cleared for each event: a few stores, not `rep stos`, which takes longer to begin than they take.
check_c_compiler_flag("-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign" MERIDIAN_HAS_MEMSET_STRATEGY)
if(MERIDIAN_HAS_MEMSET_STRATEGY)
  target_compile_options(meridian_flags INTERFACE -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
endif()
if(MERIDIAN_WERROR)
  target_compile_options(meridian_flags INTERFACE -Werror)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # These come from guesses about values at run time, and differ between versions and with sanitizers: shown, not fatal.
    foreach(guess maybe-uninitialized format-truncation format-overflow stringop-overflow stringop-overread
            stringop-truncation array-bounds restrict)
      target_compile_options(meridian_flags INTERFACE -Wno-error=${guess})
    endforeach()
  endif()
endif()
if(MERIDIAN_SANITIZE)
  target_compile_options(meridian_flags INTERFACE -fsanitize=${MERIDIAN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(meridian_flags INTERFACE -fsanitize=${MERIDIAN_SANITIZE})
  if(MERIDIAN_SANITIZE MATCHES "address")
    target_compile_options(meridian_flags INTERFACE -fsanitize-address-use-after-scope)
  endif()
endif()
if(MERIDIAN_FUZZ)
  target_compile_options(meridian_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# mrd_library(NAME DEPS a b c): the static library of src/NAME. Its headers are included as "NAME/x.h", and only by
# targets that name it in DEPS: each library has an include root of its own (a link in the build tree), so an include
# against the arrows of the design does not compile. Sources come from target_sources() of the folder and its subfolders.
function(mrd_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(${name} STATIC)
  set(root ${CMAKE_BINARY_DIR}/include-roots/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${root}/${name} SYMBOLIC)
  target_include_directories(${name} PUBLIC ${root})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE meridian_flags)
endfunction()

# meridian_lzma: the decoder of xz, as an archive where there is one: one library less to load at each start of tracebox.
function(mrd_find_lzma)
  add_library(meridian_lzma INTERFACE)
  find_library(MERIDIAN_LZMA_ARCHIVE NAMES liblzma.a HINTS ${LZMA_LIBDIR} ${LZMA_LIBRARY_DIRS})
  if(MERIDIAN_LZMA_ARCHIVE)
    target_include_directories(meridian_lzma SYSTEM INTERFACE ${LZMA_INCLUDE_DIRS})
    target_link_libraries(meridian_lzma INTERFACE ${MERIDIAN_LZMA_ARCHIVE} Threads::Threads)
  else()
    target_link_libraries(meridian_lzma INTERFACE PkgConfig::LZMA)
  endif()
endfunction()

# meridian_sqlite: SQLite of the system, as an archive where there is one. Inside the shared library every call goes
# through the procedure linkage table; linked into the program, queries are a quarter faster (measured).
function(mrd_find_sqlite)
  add_library(meridian_sqlite INTERFACE)
  find_library(MERIDIAN_SQLITE_ARCHIVE NAMES libsqlite3.a HINTS ${SQLITE3_LIBDIR} ${SQLITE3_LIBRARY_DIRS})
  if(MERIDIAN_SQLITE_ARCHIVE)
    target_include_directories(meridian_sqlite INTERFACE ${SQLITE3_INCLUDE_DIRS})
    target_link_libraries(meridian_sqlite INTERFACE ${MERIDIAN_SQLITE_ARCHIVE} ZLIB::ZLIB m ${CMAKE_DL_LIBS} Threads::Threads)
  else()
    target_link_libraries(meridian_sqlite INTERFACE PkgConfig::SQLITE3)
  endif()
endfunction()
