# What `make install` lays down: headers, both libraries, pkg-config file, program, man page, completions, licence.
install(DIRECTORY include/stencil DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS stencil_shared stencil_static
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET stencil)
  install(TARGETS stencil RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# What a link with libstencil.a must name as well. As libraries and not as Requires.private: that would drag in the private parts of every
# part (libheif's encoders and theirs), which only a link without any shared library needs.
set(private "")
foreach(lib ${ST_LIBS})
  if(lib MATCHES "^PkgConfig::(.*)$")
    foreach(folder ${${CMAKE_MATCH_1}_LIBRARY_DIRS})
      if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        list(APPEND private -L${folder})
      endif()
    endforeach()
    foreach(name ${${CMAKE_MATCH_1}_LIBRARIES})
      list(APPEND private -l${name})
    endforeach()
  elseif(lib STREQUAL "Threads::Threads")
    list(APPEND private -pthread)
  else()
    get_filename_component(name ${lib} NAME_WE)
    string(REGEX REPLACE "^lib" "" name ${name})
    list(APPEND private -l${name})
  endif()
endforeach()
string(REPLACE ";" " " ST_PC_PRIVATE "${private}")

# Paths relative to the file itself, so that `make install PREFIX=` may differ from what was configured, and the tree may be moved.
file(RELATIVE_PATH ST_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" ST_PC_PREFIX "${ST_PC_PREFIX}")
configure_file(cmake/stencil.pc.in stencil.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/stencil.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# name in the tree -> folder it goes to
function(st_install_if_there file)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${file})
    install(FILES ${file} DESTINATION ${ARGN})
  endif()
endfunction()
st_install_if_there(docs/stencil.1 ${CMAKE_INSTALL_MANDIR}/man1)
st_install_if_there(docs/completions/stencil.bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME stencil)
st_install_if_there(docs/completions/_stencil ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
st_install_if_there(docs/completions/stencil.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
st_install_if_there(LICENSE ${CMAKE_INSTALL_DOCDIR})
st_install_if_there(NOTICE ${CMAKE_INSTALL_DOCDIR})
# The demo model, where the program finds it: beside itself, ../share/stencil/models/demo.
foreach(file model.safetensors config.json preprocessor_config.json check.safetensors check.png README.md scene.png)
  st_install_if_there(models/demo/${file} ${CMAKE_INSTALL_DATADIR}/stencil/models/demo)
endforeach()
