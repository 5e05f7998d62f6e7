# make install: the programs, and the libraries for other programs, each with its header and its pkg-config file: meridian
# (docs/embedding.md) reads traces, meridian-producer (docs/producing.md) writes into a recording. An archive is one object in
# which only the names of its header are visible, so that no name of ours meets one of theirs.
include(GNUInstallDirs)

# mrd_installed_library(NAME PARTS a b SHOW patterns LINK options): libNAME.a out of the libraries PARTS.
function(mrd_installed_library name)
  cmake_parse_arguments(ARG "" "" "PARTS;SHOW;LINK" ${ARGN})
  list(TRANSFORM ARG_PARTS REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  list(TRANSFORM ARG_SHOW PREPEND --keep-global-symbol= OUTPUT_VARIABLE show)
  set(object ${CMAKE_BINARY_DIR}/${name}.o)
  set(archive ${CMAKE_BINARY_DIR}/lib${name}.a)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib ${ARG_LINK} -Wl,--start-group ${archives} -Wl,--end-group -o ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard ${show} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
    DEPENDS ${ARG_PARTS} VERBATIM COMMENT "lib${name}.a")
  if(NOT MERIDIAN_FUZZ) # fuzz targets are what that build is for
    set(all ALL)
  endif()
  add_custom_target(${name} ${all} DEPENDS ${archive})
  configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

# The file finds the rest from where it stands, wherever that has been installed or moved to.
file(RELATIVE_PATH MERIDIAN_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
mrd_installed_library(meridian PARTS api rpc summary export sql cut importer storage kernel unwind wire demangle schema base LINK -Wl,--whole-archive SHOW tp_*)
mrd_installed_library(meridian-producer PARTS capture schema wire base LINK -u mrd_producer_open
  SHOW mrd_producer_* mrd_data_source_* mrd_writer_* mrd_packet_* mrd_message_* mrd_put_*)

# libmeridian.so, of the same object: what the header declares, as versioned symbols. Sanitized builds have none: a
# program that loads it would have to begin with the sanitizer.
file(STRINGS include/meridian/tp.h declared REGEX "^[a-z].*[ *]tp_[a-z_0-9]+\\(")
list(TRANSFORM declared REPLACE ".*[ *](tp_[a-z_0-9]+)\\(.*" "\\1")
list(JOIN declared "$<SEMICOLON> " declared)
if(NOT MERIDIAN_SANITIZE AND NOT MERIDIAN_FUZZ)
  set(map ${CMAKE_BINARY_DIR}/libmeridian.map)
  file(GENERATE OUTPUT ${map} CONTENT "MERIDIAN_${PROJECT_VERSION_MAJOR} {\n  global: ${declared}$<SEMICOLON>\n  local: *$<SEMICOLON>\n}$<SEMICOLON>\n")
  set(soname libmeridian.so.${PROJECT_VERSION_MAJOR})
  set(shared ${CMAKE_BINARY_DIR}/libmeridian.so.${PROJECT_VERSION})
  add_custom_command(OUTPUT ${shared}
    COMMAND ${CMAKE_C_COMPILER} -shared -o ${shared} -Wl,-soname,${soname} -Wl,--version-script=${map} -Wl,-Bsymbolic -Wl,-z,defs
      -Wl,-z,relro,-z,now,-z,text -Wl,--whole-archive ${CMAKE_BINARY_DIR}/libmeridian.a -Wl,--no-whole-archive
      ${SQLITE3_LINK_LIBRARIES} ${ZLIB_LIBRARIES} ${ZSTD_LINK_LIBRARIES} ${LZMA_LINK_LIBRARIES} ${EXPAT_LINK_LIBRARIES} ${NETTLE_LINK_LIBRARIES}
      ${PROTOBUF_C_LINK_LIBRARIES} -lm -ldl -lpthread
    COMMAND ${CMAKE_COMMAND} -E create_symlink libmeridian.so.${PROJECT_VERSION} ${CMAKE_BINARY_DIR}/${soname}
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${soname} ${CMAKE_BINARY_DIR}/libmeridian.so
    DEPENDS meridian ${CMAKE_BINARY_DIR}/libmeridian.a ${map} VERBATIM COMMENT "${soname}")
  add_custom_target(meridian-shared ALL DEPENDS ${shared})
  add_dependencies(meridian-shared meridian)
  install(FILES ${shared} ${CMAKE_BINARY_DIR}/${soname} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(FILES ${CMAKE_BINARY_DIR}/libmeridian.so DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endif()

# The library that profiled programs load; `tracebox profile --heap` finds it from where it stands itself.
install(TARGETS meridian_heap LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/meridian COMPONENT record)

install(FILES include/meridian/tp.h include/meridian/producer.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meridian
  COMPONENT dev)

# Each program with its pages, made from the tables of flags (docs/CMakeLists.txt).
foreach(pair "tp_shell tools" "tracebox record")
  separate_arguments(pair)
  list(GET pair 0 program)
  list(GET pair 1 part)
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${part})
  install(FILES ${MERIDIAN_PAGES}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${part})
  install(FILES ${MERIDIAN_PAGES}/${program}.bash RENAME ${program} COMPONENT ${part}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${MERIDIAN_PAGES}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT ${part})
  install(FILES ${MERIDIAN_PAGES}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT ${part})
endforeach()

# Units name the program where it is installed to. They are not enabled.
install(CODE "
  file(GLOB units ${CMAKE_SOURCE_DIR}/systemd/*.service ${CMAKE_SOURCE_DIR}/systemd/*.socket)
  foreach(unit IN LISTS units)
    get_filename_component(name \${unit} NAME)
    file(READ \${unit} text)
    string(REPLACE /usr/bin/ \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/ text \"\${text}\")
    file(WRITE \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/\${name} \"\${text}\")
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${CMAKE_INSTALL_PREFIX}/lib/systemd/system/\${name})
  endforeach()" COMPONENT record)
install(FILES systemd/meridian.sysusers RENAME meridian.conf DESTINATION lib/sysusers.d COMPONENT record)
install(FILES systemd/meridian.tmpfiles RENAME meridian.conf DESTINATION lib/tmpfiles.d COMPONENT record)

install(DIRECTORY python/meridian DESTINATION lib/python3/dist-packages COMPONENT python FILES_MATCHING PATTERN "*.py")

include(cmake/Packages.cmake)
