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
    COMMAND ${CMAKE_LINKER} -r ${ARG_LINK} --start-group ${archives} --end-group -o ${object}
    COMMAND ${CMAKE_OBJCOPY} --wildcard ${show} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
    DEPENDS ${ARG_PARTS} VERBATIM COMMENT "lib${name}.a")
  add_custom_target(${name} ALL DEPENDS ${archive})
  configure_file(cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# The file finds the rest from where it stands, wherever that has been installed or moved to.
file(RELATIVE_PATH MERIDIAN_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
mrd_installed_library(meridian PARTS api rpc summary sql importer storage kernel wire schema base LINK --whole-archive SHOW tp_*)
mrd_installed_library(meridian-producer PARTS capture schema wire base LINK -u mrd_producer_open
  SHOW mrd_producer_* mrd_data_source_* mrd_writer_* mrd_packet_* mrd_message_* mrd_put_*)
install(FILES include/meridian/tp.h include/meridian/producer.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meridian)
install(TARGETS tp_shell tracebox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Made from the tables of flags, see docs/CMakeLists.txt.
install(FILES ${MERIDIAN_PAGES}/tp_shell.1 ${MERIDIAN_PAGES}/tracebox.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
foreach(program tp_shell tracebox)
  install(FILES ${MERIDIAN_PAGES}/${program}.bash RENAME ${program}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${MERIDIAN_PAGES}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${MERIDIAN_PAGES}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
