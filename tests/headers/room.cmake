# The public headers as a user's compiler meets them: each alone, in C99, C11 and C++17, pedantic; and what the libraries export.
find_program(ST_CXX NAMES g++ c++ clang++)
file(GLOB headers RELATIVE ${CMAKE_SOURCE_DIR}/include CONFIGURE_DEPENDS include/stencil/*.h)
set(strict -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Werror -I${CMAKE_SOURCE_DIR}/include)
set(here ${CMAKE_SOURCE_DIR}/tests/headers)

foreach(header ${headers})
  get_filename_component(name ${header} NAME_WE)
  foreach(std c99 c11)
    add_test(NAME headers.${name}.${std}
      COMMAND ${CMAKE_C_COMPILER} -std=${std} -Wstrict-prototypes ${strict} "-DST_HEADER=<${header}>" ${here}/alone.c)
  endforeach()
  if(ST_CXX)
    add_test(NAME headers.${name}.c++17 COMMAND ${ST_CXX} -x c++ -std=c++17 ${strict} "-DST_HEADER=<${header}>" ${here}/alone.c)
  endif()
endforeach()
foreach(std c99 c11)
  add_test(NAME headers.initialisers.${std} COMMAND ${CMAKE_C_COMPILER} -std=${std} ${strict} ${here}/initialisers.c)
endforeach()
if(ST_CXX)
  add_test(NAME headers.initialisers.c++17 COMMAND ${ST_CXX} -x c++ -std=c++17 ${strict} ${here}/initialisers.c)
else()
  message(STATUS "headers as C++: NOT RUN, no C++ compiler found")
endif()
add_executable(initialisers ${here}/initialisers.c)
target_include_directories(initialisers PRIVATE include)
add_test(NAME headers.initialisers COMMAND initialisers)

# Sanitizers add symbols and state of their own.
if(NOT ST_SANITIZE AND NOT ST_FUZZ)
  add_test(NAME headers.symbols
    COMMAND ${CMAKE_SOURCE_DIR}/tools/check_symbols.sh $<TARGET_FILE:stencil_shared> $<TARGET_FILE:stencil_static>)
endif()
