# make deb: packages for Debian and Ubuntu, split by what people want: the tools to read traces, the recorder, the shared
# library, what programs are built with, and the Python package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME meridian)
set(CPACK_PACKAGE_CONTACT "The Meridian authors <meridian@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_COMPONENTS_ALL tools record library dev python)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)

# What is loaded when it is needed (base/libarchive.h); Debian 13 and Ubuntu 24.04 gave it another name.
set(libarchive "libarchive13t64 | libarchive13")

# mrd_package(PART NAME DEPENDS DESCRIPTION)
function(mrd_package part name depends description)
  string(TOUPPER ${part} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
  install(FILES LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${part})
endfunction()
mrd_package(tools meridian-tools "${libarchive}" "SQL over Perfetto traces and their relatives
 tp_shell reads recordings of one or many machines on one clock and answers SQL.")
mrd_package(record meridian-record "" "Records what Linux machines do
 tracebox: the tracing service, the kernel probes, the relay between machines and the
 command that records, compatible with Perfetto's.")
set(CPACK_DEBIAN_RECORD_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/systemd/deb/postinst ${CMAKE_SOURCE_DIR}/systemd/deb/prerm
  ${CMAKE_SOURCE_DIR}/systemd/deb/postrm)
mrd_package(library libmeridian0 "${libarchive}" "Library that reads traces and answers SQL about them")
mrd_package(dev libmeridian-dev "libmeridian0 (= ${PROJECT_VERSION})" "Headers and archives of Meridian's libraries
 meridian reads traces, meridian-producer writes into a recording.")
mrd_package(python python3-meridian "python3, libmeridian0 (= ${PROJECT_VERSION})" "Traces in Python
 Loads traces or asks a server, with the interface of Perfetto's package, too.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/python/deb/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
include(CPack)
