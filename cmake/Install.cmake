# make install: the programs, and the library for other programs (docs/embedding.md): meridian/tp.h, libmeridian.a and its
# pkg-config file. The archive is one object in which only tp_* is visible, so that no name of ours meets one of theirs.
include(GNUInstallDirs)

set(parts api rpc summary sql importer storage wire schema base)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
set(object ${CMAKE_BINARY_DIR}/meridian.o)
set(archive ${CMAKE_BINARY_DIR}/libmeridian.a)
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_LINKER} -r --whole-archive ${archives} -o ${object}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=tp_* ${object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_AR} rcs ${archive} ${object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
  DEPENDS ${parts} VERBATIM COMMENT "libmeridian.a")
add_custom_target(meridian ALL DEPENDS ${archive})

# The file finds the rest from where it stands, wherever that has been installed or moved to.
file(RELATIVE_PATH MERIDIAN_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/meridian.pc.in ${CMAKE_BINARY_DIR}/meridian.pc @ONLY)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/meridian.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES include/meridian/tp.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/meridian)
install(TARGETS tp_shell tracebox RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
