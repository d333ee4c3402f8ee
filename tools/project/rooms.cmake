# One CMake library per room, each with an explicit list of what it may use. tests/rooms holds these lists, and the
# includes that the code really has, against the law in tests/rooms/law.tsv.

add_library(signalbox_flags INTERFACE)
target_include_directories(signalbox_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(signalbox_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
  $<$<BOOL:${SIGNALBOX_WERROR}>:-Werror>)
if(SIGNALBOX_SANITIZE)
  target_compile_options(signalbox_flags INTERFACE -fsanitize=${SIGNALBOX_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(signalbox_flags INTERFACE -fsanitize=${SIGNALBOX_SANITIZE})
endif()

function(signalbox_add_rooms)
  foreach(top IN LISTS ARGN)
    file(GLOB_RECURSE lists RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${top}/CMakeLists.txt)
    list(SORT lists)
    foreach(list IN LISTS lists)
      get_filename_component(folder ${list} DIRECTORY)
      add_subdirectory(${folder})
    endforeach()
  endforeach()
endfunction()

function(signalbox_target_name room out)
  string(MAKE_C_IDENTIFIER "room_${room}" name)
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# signalbox_room(messages/codec PURE SOURCES a.cpp USES messages/base LINKS signalbox_msgpack)
# The first argument is the room's path; PURE or SHELL says whether it may touch clocks, randomness and the world.
function(signalbox_room room kind)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  if(NOT kind MATCHES "^(PURE|SHELL)$" OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "signalbox_room(${room}): PURE or SHELL, then SOURCES, USES, LINKS")
  endif()
  signalbox_target_name(${room} target)
  set(scope INTERFACE)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    set_property(GLOBAL APPEND PROPERTY SIGNALBOX_BUILT_ROOMS ${target})
  else()
    add_library(${target} INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} signalbox_flags ${ARG_LINKS})
  foreach(used IN LISTS ARG_USES)
    signalbox_target_name(${used} used_target)
    target_link_libraries(${target} ${scope} ${used_target})
  endforeach()
  list(JOIN ARG_USES "," uses)
  list(JOIN ARG_LINKS "," links)
  set_property(GLOBAL APPEND PROPERTY SIGNALBOX_ROOMS "${room}\t${kind}\t${uses}\t${links}")
endfunction()

# signalbox_program(signalbox SOURCES main.cpp USES tools/cli): an executable in build/<preset>/bin.
function(signalbox_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_link_libraries(${name} PRIVATE signalbox_flags ${ARG_LINKS})
  foreach(used IN LISTS ARG_USES)
    signalbox_target_name(${used} used_target)
    target_link_libraries(${name} PRIVATE ${used_target})
  endforeach()
endfunction()

# signalbox_test(messages/base SOURCES test_rng.cpp USES messages/base): a Boost.Test program named after its room.
# CONCURRENT: it is run under the thread sanitizer as well.
function(signalbox_test room)
  cmake_parse_arguments(ARG "CONCURRENT" "" "SOURCES;USES;LINKS" ${ARGN})
  string(MAKE_C_IDENTIFIER "test_${room}" name)
  signalbox_program(${name} SOURCES ${ARG_SOURCES} USES ${ARG_USES} LINKS ${ARG_LINKS})
  target_link_libraries(${name} PRIVATE signalbox_test_support)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${room} COMMAND ${name})
  if(ARG_CONCURRENT)
    set_tests_properties(${room} PROPERTIES LABELS concurrent)
    add_dependencies(concurrent_tests ${name})
  endif()
endfunction()

# One program per room that links it whole with nothing but what it declares: a missing USES or LINKS is an undefined
# symbol here.
function(signalbox_add_link_tests)
  add_library(signalbox_link_main OBJECT ${CMAKE_SOURCE_DIR}/tests/rooms/link/main.cpp)
  add_custom_target(link_tests)
  get_property(rooms GLOBAL PROPERTY SIGNALBOX_BUILT_ROOMS)
  foreach(target IN LISTS rooms)
    add_executable(link_${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:signalbox_link_main>)
    target_link_libraries(link_${target} PRIVATE signalbox_flags $<LINK_LIBRARY:WHOLE_ARCHIVE,${target}>)
    target_link_options(link_${target} PRIVATE -Wl,--strip-all)
    set_target_properties(link_${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/link)
    add_dependencies(link_tests link_${target})
  endforeach()
endfunction()

function(signalbox_write_rooms file)
  get_property(rooms GLOBAL PROPERTY SIGNALBOX_ROOMS)
  list(JOIN rooms "\n" text)
  file(WRITE ${file} "${text}\n")
endfunction()
