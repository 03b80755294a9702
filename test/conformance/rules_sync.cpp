// SPDX-License-Identifier: Apache-2.0
// R46 to R49: notifies and events between processes.
#include "expect.hpp"

using namespace conformance;
namespace code = acl::code;
using acl::notify_export::disable_pid_validation;

TEST_CASE("R46: the creator of a notify waits, importers record") {
  Acl a;
  Acl b;
  const Got<void*> notify = a.notify();
  const Got<Key> key = a.export_notify(notify.value, disable_pid_validation);
  CODE("aclrtNotifyGetExportKey", key.code, 0);
  const Got<void*> imported = b.import_notify(key.value);
  CODE("aclrtNotifyImportByKey", imported.code, 0);
  void* const theirs = b.stream();
  CODE("aclrtWaitAndResetNotify by the importer", b.wait(imported.value, theirs), code::rt_param_invalid);
  void* const ours = a.stream();
  CODE("aclrtWaitAndResetNotify by the creator", a.wait(notify.value, ours), 0);
  CODE("aclrtRecordNotify by the importer", b.record(imported.value, theirs), 0);
  CODE("aclrtSynchronizeStream there", b.synchronize(theirs), 0);
  CODE("aclrtSynchronizeStream here", a.synchronize(ours), 0);
}

TEST_CASE("R47: the flags of a notify are 0 and 2, and it is exported once") {
  Acl a;
  Acl b;
  void* const notify = a.notify().value;
  CODE("exported with flag 1, as memory is", a.export_notify(notify, 1).code, code::rt_param_invalid);
  const Got<Key> key = a.export_notify(notify, disable_pid_validation);
  CODE("exported with flag 2", key.code, 0);
  CODE("exported again", a.export_notify(notify, disable_pid_validation).code, code::rt_internal_error);
  CODE("imported with flag 4", b.import_notify(key.value, 4).code, code::rt_param_invalid);
  CODE("imported with flag 2", b.import_notify(key.value, acl::notify_import::enable_peer_access).code, 0);
}

TEST_CASE("R48: each participant destroys the notify") {
  Acl a;
  Acl b;
  void* const notify = a.notify().value;
  const Key key = a.export_notify(notify, disable_pid_validation).value;
  const Got<void*> imported = b.import_notify(key);
  CODE("aclrtDestroyNotify by the creator", a.destroy_notify(notify), 0);
  CODE("aclrtDestroyNotify by the importer", b.destroy_notify(imported.value), 0);
  CODE("imported after that", b.import_notify(key).code, Expected::refused());
}

TEST_CASE("R49: an event for other processes has no other flag, and cannot be asked") {
  if (on("310p") || on("training")) CONFORMANCE_SKIP("the product has no such events");
  Acl a;
  Acl b;
  CODE("with another flag", a.event(acl::event_flag::ipc | acl::event_flag::sync).code, Expected::refused());
  const Got<void*> event = a.event(acl::event_flag::ipc);
  CODE("alone", event.code, 0);
  CODE("aclrtQueryEventStatus",
       a.run(
           [](const acl::Table& acl, void* what) {
             acl::aclrtEventRecordedStatus status = 0;
             return acl.aclrtQueryEventStatus(what, &status);
           },
           event.value),
       Expected::refused());
  void* const stream = a.stream();
  CODE("aclrtResetEvent",
       a.run([](const acl::Table& acl, void* what, void* in) { return acl.aclrtResetEvent(what, in); }, event.value,
             stream),
       Expected::refused());
  const auto handle = a.run(
      [](const acl::Table& acl, void* what) {
        Got<EventKey> got;
        got.code = acl.aclrtIpcGetEventHandle(what, &got.value);
        return got;
      },
      event.value);
  CODE("aclrtIpcGetEventHandle", handle.code, 0);
  const auto opened = b.run(
      [](const acl::Table& acl, EventKey from) {
        Got<void*> got;
        got.code = acl.aclrtIpcOpenEventHandle(from, &got.value);
        return got;
      },
      handle.value);
  CODE("aclrtIpcOpenEventHandle in another process", opened.code, 0);
  CODE("aclrtRecordEvent",
       a.run([](const acl::Table& acl, void* what, void* in) { return acl.aclrtRecordEvent(what, in); }, event.value,
             stream),
       0);
  CODE("aclrtSynchronizeEvent in the other process",
       b.run([](const acl::Table& acl, void* what) { return acl.aclrtSynchronizeEvent(what); }, opened.value), 0);
}
