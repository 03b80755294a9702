// SPDX-License-Identifier: Apache-2.0
#include "catalogue.hpp"
#include "notes.hpp"

#include <algorithm>
#include <array>

namespace devshare {
namespace detail {
namespace {

template <std::size_t N>
using Causes = std::array<std::string_view, N>;

constexpr Causes<2> invalid_argument{"a null address, a zero size or a pid that is no pid was passed",
                                     "an address that is not device memory of this process, or not any more"};
constexpr Causes<2> out_of_range{"offset plus size leave the block", "the destination is smaller than the source"};
constexpr Causes<2> closed{"the object was closed", "the object was moved from: into a key, a function or a container"};
constexpr Causes<1> forked{"the object, or the runtime, belongs to the process that forked this one"};
constexpr Causes<2> runtime_gone{"Runtime::finalize() or aclFinalize was called while the object lived",
                                 "the runtime was never initialised"};
constexpr Causes<3> runtime_not_found{
    "DEVSHARE_RUNTIME names a file that does not exist, or does not load because another library is missing",
    "DEVSHARE_RUNTIME is `ascend` and no libascendcl.so is on the loader's path or where CANN installs",
    "DEVSHARE_RUNTIME is another word than `host` and `ascend`: every other is taken for the path of a library"};
constexpr Causes<2> runtime_incomplete{"the library is older than the oldest CANN that devshare supports",
                                       "DEVSHARE_RUNTIME names a library that is not an ACL runtime"};
constexpr Causes<3> unsupported{"the runtime is older than the call: sharing by key needs CANN 8.2 and a matching driver",
                                "the product does not have the call",
                                "virtualised instances and split compute groups share nothing"};
constexpr Causes<2> backend{"a sandbox (seccomp, container policy) forbids memfd_create or Unix sockets",
                            "the kernel is older than the host runtime needs"};
constexpr Causes<2> no_such_device{"the id is not below the device count",
                                   "ASCEND_RT_VISIBLE_DEVICES hides the device from this process: it is read to its "
                                   "first mistake, and ids that do not ascend hide all devices"};
constexpr Causes<2> no_context{"the device could not be made current: it was reset, or taken by somebody else",
                               "the context that was current on this thread was destroyed"};
constexpr Causes<2> out_of_memory{"the device's memory is in use, by this process or another",
                                  "a policy asks for huge pages only, and none are left"};
constexpr Causes<2> no_space{"the file system that backs host device memory is full: in containers /dev/shm has 64 MiB",
                             "a quota"};
constexpr Causes<2> fd_limit{"RLIMIT_NOFILE: the host runtime holds one descriptor for each allocation",
                             "descriptors leak elsewhere in the process"};
constexpr Causes<1> mapping_limit{"vm.max_map_count: the process has as many mappings as it may"};
constexpr Causes<2> address_space{
    "more device memory is named at once than the window of device addresses holds",
    "RLIMIT_AS (ulimit -v) is below the window of the host runtime, which is reserved whole and takes no memory"};
constexpr Causes<4> not_exportable{"the address is not the start of an aclrtMalloc block, but lies inside one",
                                   "a caching allocator of the framework carved the block out of a larger one",
                                   "the memory was itself imported, mapped from a physical handle, or is read-only",
                                   "an earlier run left keys behind, and the driver has none to give"};
constexpr Causes<5> not_authorised{"the pid that was admitted is not the importer's: in a container getpid() is another number",
                                   "the importer was restarted, or started after it was admitted",
                                   "nobody was admitted",
                                   "the exporter is in a pid namespace from which it cannot check the pid it admitted",
                                   "the two processes belong to different users"};
constexpr Causes<1> validation_disabled{"the key was exported for whoever holds its ticket, so there is no list to admit to"};
constexpr Causes<1> not_the_exporter{"admit and close of an export were called in a process that did not export it"};
constexpr Causes<3> stale_token{"the exporter closed the key or freed its memory before the import",
                                "the ticket is from an earlier run",
                                "close was called once more than import"};
constexpr Causes<2> exporter_gone{"the exporting process ended", "the exporter closed its key while this import was open"};
constexpr Causes<1> self_import{"the ticket was issued by this very process"};
constexpr Causes<2> already_imported{"the same key is open on another device of this process",
                                     "another library of the process has imported it"};
constexpr Causes<4> peer_missing{"peer access is on in one direction only: it has no effect",
                                 "the import was asked to enable nothing, and nobody has",
                                 "on 310P, the memory was allocated without Placement::peer_to_peer (R43)",
                                 "the two devices are joined by a link over which keys do not work"};
constexpr Causes<2> peer_impossible{"the devices are on different switches, or are two dies of one card",
                                    "the same device was named twice"};
constexpr Causes<2> peer_limit{"a device has as many peers as it may (8, on 950 16)",
                               "32 processes have the same direction enabled"};
constexpr Causes<2> peer_mismatch{"the grant joins other devices than the importer's and the owner's",
                                  "the grant is one direction only"};
constexpr Causes<1> cross_device{"the memory belongs to another device: by key, only kernels and asynchronous copies inside "
                                 "the device may use it"};
constexpr Causes<3> malformed{"the message was cut, padded or passed through a text encoding",
                              "the bytes are not a ticket", "the bytes were changed on their way"};
constexpr Causes<2> version{"the two processes were built with different versions of devshare",
                            "the bytes were swapped by a transport that converts integers"};
constexpr Causes<1> mechanism{"the exporter shares by a mechanism that this import does not take"};
constexpr Causes<3> no_common_mechanism{
    "what works here is not what the importer can do",
    "the mechanisms that both have are not among those that are preferred: one that is not named is never chosen",
    "nothing works between the two devices, and probe() says why not"};
constexpr Causes<2> not_one_handle{"the mapping is of several handles, and an export is of one",
                                  "the memory was imported, and only who allocated it may share it (R26)"};
constexpr Causes<3> unsupported_kind{"fabric tokens are A3's alone",
                                     "the runtime is older than the calls: V2 and fabric need CANN 8.5",
                                     "virtualised instances and split compute groups share no handles (R35)"};
constexpr Causes<3> exported_otherwise{
    "it was exported as another kind before: an export of a handle lasts as long as the handle",
    "it was exported for whoever holds the ticket, and is wanted for those on a list, or the reverse",
    "another library of the process has exported it"};
constexpr Causes<2> mixed{"memory of two devices was to be mapped into one range",
                          "own and imported memory, or imports of V1 and V2, were to be mapped into one range"};
constexpr Causes<2> no_backing{"release_backing() was called, and restore() was not, or failed",
                               "release_backing() was called twice"};
constexpr Causes<3> in_use{"a copy, or other work that is still queued, uses the memory",
                           "the range still has memory mapped in it", "another thread is at it"};
constexpr Causes<2> already_registered{"another library of the process has registered it",
                                       "a registration of the same page lives already"};
constexpr Causes<5> refused_handle_import{
    "the exporter did not admit this process, or admitted another number than its bare pid",
    "another library of this process has the handle imported already (R27)",
    "the token belongs to the other version of the calls: V1 tokens go to V1, V2 tokens to V2 (R31)",
    "a virtualised instance or a split compute group, which shares no handles (R35)",
    "the access call got a device id that the driver does not know (R37)"};
constexpr Causes<3> refused_map{"the range holds memory of another device, or of another origin (R29)",
                                "something is mapped at the address already",
                                "the size is not that of the memory (R36)"};
constexpr Causes<3> refused_unmap{"work that is still queued uses the memory: synchronise its stream first (R5)",
                                  "the address was unmapped by somebody else", "the device was reset in between"};
constexpr Causes<2> wrong_device{"a stream and an event, or an event and another's stream, belong to two devices",
                                 "the stream was made on another device than the one that is current"};
constexpr Causes<2> resource_limit{"streams, events or notifies are made and not ended",
                                   "another library of the process, or another process, has them"};
constexpr Causes<2> not_ready{"the event was never recorded", "the stream has not reached the event yet"};
constexpr Causes<4> queue_stuck{"the work takes longer",
                                "the stream waits for an event or a notify that nobody records",
                                "the process that was to record has ended", "a function in the stream does not return"};
constexpr Causes<3> not_done{"the task of the error's code failed on the device",
                             "the memory that a copy used was taken away by its owner meanwhile",
                             "an earlier task of this context failed, and its error sticks"};
constexpr Causes<2> refused_event{"the event belongs to another device, or was ended",
                                  "an event for other processes takes no query, reset or measurement (R49)"};
constexpr Causes<3> not_creator{"the notify was imported: only the process that created it waits on it (R46)",
                                "a forked child uses its parent's notify", "the notify was ended"};
constexpr Causes<2> different_host{"the ticket came from another machine", "the machine was rebooted since"};
constexpr Causes<1> access_mismatch{"the ticket grants reading only"};
constexpr Causes<2> timed_out{"the exporting process is stopped, or too busy to answer",
                              "another runtime is at the other end of the socket"};
constexpr Causes<3> no_lender{"the lender is not there yet, or has ended",
                              "the two sides name different endpoints, or different files by one relative path",
                              "an abstract name, and the two are in different network namespaces"};
constexpr Causes<3> endpoint_in_use{"another process lends there already",
                                    "the path names something that is no socket, which is never removed",
                                    "another program listens there, or holds the lock file beside the socket"};
constexpr Causes<3> not_permitted{"the two processes belong to different users, and only the same user may by default",
                                  "the lender's list or its callback does not have this borrower",
                                  "the socket's permissions, or a sandbox, forbid to connect"};
constexpr Causes<3> no_such_offer{"the name is misspelt", "the lender has not offered it yet: wait with a later deadline",
                                  "the offer was withdrawn"};
constexpr Causes<1> already_offered{"an offer lives under this name"};
constexpr Causes<2> still_imported{"a borrower has not returned its lease yet: Lent::holders() names it",
                                   "a borrower is stopped, or does not look whether its lease is wanted back"};
constexpr Causes<2> revoked{"the lender revoked the offer, and its patience has run out",
                            "the lender withdrew the offer before this borrower had imported"};
constexpr Causes<3> bad_message{"another program is at the other end of the socket",
                                "the two processes were built with different versions of devshare",
                                "something between the two cut or joined messages"};
constexpr Causes<2> nobody_answered{"the lender is stopped, or nobody calls its dispatch()",
                                    "the lender is busy, or the deadline is short"};
constexpr Causes<2> nothing_newer{"the lender has published nothing since", "the lender is stopped"};
constexpr Causes<4> bad_switch{"a DEVSHARE_HOST_ variable has a value outside of what docs/host-runtime.md lists",
                               "a DEVSHARE_HOST_ variable is misspelt: a name that is no switch is refused, too",
                               "host::set() set such a value, over the environment",
                               "the journal that DEVSHARE_HOST_JOURNAL names cannot be opened"};
constexpr Causes<3> refused_any{"the driver refused and does not say why",
                                "an earlier asynchronous task of this context failed, and its error sticks",
                                "the device is in an error state"};
constexpr Causes<6> refused_import{
    "the exporter did not admit this process, or admitted another number than its bare pid",
    "the exporter closed the key, freed the memory or ended",
    "peer access between the two devices is not on in both directions",
    "the cards are joined by PCIe only, over which keys need driver 25.5.2 and firmware 7.8.0.7.220, or do not work",
    "the key is open on another device of this process",
    "an earlier asynchronous task of this context failed, and its error sticks"};
constexpr Causes<3> refused_admit{"the key was closed", "this process did not export it",
                                  "only this process's own pid was named, which is never on the list"};
constexpr Causes<3> refused_close{"the key was closed before, or never opened, in this process",
                                  "the key belongs to another process",
                                  "the device was reset in between"};
constexpr Causes<2> refused_bare_pid{"the device manager cannot be opened: the container lacks the device nodes",
                                     "the driver is not loaded"};
constexpr Causes<2> refused_disable{"peer access was not enabled, or was given back already by somebody else",
                                    "the device was reset in between"};

using enum Operation;

constexpr CatalogueEntry entries[] = {
    {Errc::invalid_argument, none,
     {"an argument is not what the call takes", "", invalid_argument, "pass what the header documents"}},
    {Errc::out_of_range, none,
     {"the range leaves its block", "", out_of_range, "compute offsets in bytes from the start of the block, in 64 bits"}},
    {Errc::closed, none,
     {"the object holds nothing any more", "", closed, "use the object that the consuming step returned"}},
    {Errc::forked, none,
     {"objects of the parent process are inert in a forked child", "R4", forked,
      "open the runtime in the child, or start it by exec"}},
    {Errc::runtime_gone, none,
     {"the runtime was finalized", "", runtime_gone, "let objects end before their runtime, then finalize once"}},
    {Errc::runtime_not_found, none,
     {"the wanted ACL runtime could not be loaded", "", runtime_not_found,
      "check the path and its dependencies with ldd, or unset DEVSHARE_RUNTIME"}},
    {Errc::runtime_incomplete, none,
     {"the library lacks an entry point that devshare requires", "", runtime_incomplete, "install a newer CANN"}},
    {Errc::unsupported_by_runtime, none,
     {"the runtime does not support the call", "", unsupported, "install a newer CANN and driver, or share another way"}},
    {Errc::unsupported_by_runtime, export_handle,
     {"this kind of token does not exist here", "R35", unsupported_kind, "take a kind that probe() finds working"}},
    {Errc::backend_unavailable, none,
     {"the host runtime cannot be made here", "", backend,
      "allow the system call that the error number names, or see docs/host-runtime.md for DEVSHARE_HOST_BACKING"}},
    {Errc::no_such_device, none,
     {"there is no such device", "", no_such_device, "use an id below Runtime::device_count()"}},
    {Errc::no_device_context, none,
     {"no device could be made current on this thread", "R1", no_context,
      "do not reset a device that devshare objects use"}},
    {Errc::out_of_memory, none,
     {"the device has no room", "", out_of_memory, "free memory, or ask Device::memory_info() first"}},
    {Errc::no_space, none,
     {"the backing file system has no room", "", no_space,
      "give the container more shared memory (--shm-size), or use anonymous memory"}},
    {Errc::fd_limit, none,
     {"the process has no descriptor left", "", fd_limit,
      "raise the soft limit (ulimit -n, or DEVSHARE_HOST_RAISE_NOFILE=1), or close something and try again"}},
    {Errc::mapping_limit, none,
     {"the process has no mapping left", "", mapping_limit, "raise vm.max_map_count, or share fewer, larger blocks"}},
    {Errc::address_space_exhausted, none,
     {"no device address is free", "", address_space, "free blocks, or share fewer at once; lift the limit of addresses (ulimit -v unlimited)"}},
    {Errc::not_exportable, none,
     {"this memory cannot be exported", "R10, R12", not_exportable,
      "export the whole allocation and admit importers to a slice of it"}},
    {Errc::not_exportable, export_handle,
     {"this is not one handle of this process", "R26", not_one_handle, "export a handle each, or retain_from() a piece"}},
    {Errc::not_authorised, none,
     {"the importing process is not admitted", "R13, R14, R15", not_authorised,
      "send the importer's Runtime::bare_pid() to the exporter and admit that, after the importer has started"}},
    {Errc::validation_disabled, none,
     {"this export asks nobody", "R13", validation_disabled, "take ticket() instead of admit(), or export_key()"}},
    {Errc::not_the_exporter, none,
     {"only the exporting process may do this", "R17", not_the_exporter, "do it where the export was made"}},
    {Errc::stale_token, none,
     {"there is no such export any more", "R18", stale_token, "ask the exporter for a new ticket"}},
    {Errc::exporter_gone, none,
     {"the exporter took its memory with it", "R20, R22", exporter_gone,
      "close this import and ask for a new ticket; keep the exporter until every importer has closed"}},
    {Errc::self_import, none,
     {"a process cannot import what it exported", "", self_import, "use the exporter's own bytes()"}},
    {Errc::already_imported, none,
     {"this key is open elsewhere in this process", "R25", already_imported, "use one device for one key"}},
    {Errc::peer_access_missing, none,
     {"the two devices may not reach each other's memory yet", "R19, R43, R45", peer_missing,
      "open without a PeerAccess so that the runtime enables it, or pass PeerAccess::both_ways()"}},
    {Errc::peer_access_impossible, none,
     {"the two devices cannot reach each other", "R44", peer_impossible, "choose devices that can_access_peer() joins"}},
    {Errc::peer_access_limit, none,
     {"no further peer access can be enabled", "", peer_limit, "give grants back that are no longer used"}},
    {Errc::peer_mismatch, none,
     {"the peer access given is for other devices", "", peer_mismatch,
      "pass PeerAccess::both_ways(importer's device, owner's device)"}},
    {Errc::cross_device_copy, none,
     {"this copy is not allowed on memory of another device", "R42", cross_device,
      "run a kernel on it, or let the exporter copy on its own device"}},
    {Errc::malformed_token, none,
     {"these bytes are no ticket", "R61", malformed, "send all ticket_size bytes, as they are"}},
    {Errc::version_mismatch, none,
     {"the ticket is of another version", "", version, "use the same version of devshare on both sides"}},
    {Errc::mechanism_mismatch, none,
     {"the ticket is of another mechanism", "", mechanism, "let exporter and importer agree on one mechanism first"}},
    {Errc::mechanism_mismatch, choose,
     {"no mechanism works here, is preferred and is one that the importer has", "", no_common_mechanism,
      "see Probe::why_not() of each, prefer more of them, or use devices that reach each other"}},
    {Errc::already_exported_as, none,
     {"the handle has its one export already", "R27", exported_otherwise,
      "export it the same way again, which gives the same token, or allocate another handle"}},
    {Errc::mixed_memory, none,
     {"one range takes memory of one device and one origin", "R29", mixed, "reserve another range for it"}},
    {Errc::no_backing, none,
     {"there is no memory behind the addresses", "", no_backing, "restore() the mapping first"}},
    {Errc::in_use, none,
     {"something that must end first goes on", "R5, R38", in_use,
      "synchronise what uses it, end what is mapped, then try again"}},
    {Errc::already_registered, none,
     {"the host memory is registered already", "", already_registered,
      "register a page once, and share that registration"}},
    {Errc::wrong_device, none,
     {"two devices are mixed", "", wrong_device, "use streams, events and notifies on the device that they were made on"}},
    {Errc::resource_limit, none,
     {"no stream, event or notify is left", "", resource_limit, "end those that are no longer used, or use one again"}},
    {Errc::not_ready, none,
     {"what was asked for has not happened yet", "", not_ready, "synchronise the stream or the event first"}},
    {Errc::timed_out, synchronize,
     {"the queued work did not end in time", "", queue_stuck, "wait longer, or see what the stream waits for"}},
    {Errc::timed_out, wait_notify,
     {"the notify was not recorded in time", "", queue_stuck, "see whether the recording process runs"}},
    {Errc::not_the_exporter, wait_notify,
     {"only who created a notify waits on it", "R46", not_creator, "wait where the notify was made, and record where it was imported"}},
    {Errc::different_host, none,
     {"the ticket was issued elsewhere", "", different_host, "share inside one machine, and ask for a new ticket"}},
    {Errc::access_mismatch, none,
     {"the ticket grants less access than was asked for", "", access_mismatch, "open an ImportedConstMapping"}},
    {Errc::timed_out, none,
     {"the exporter did not answer in time", "", timed_out, "see whether the exporting process runs, then try again"}},
    {Errc::bad_switch, none,
     {"a variable that configures the host runtime cannot be understood", "", bad_switch,
      "correct the variable or unset it: the error's note names it, its value and what is allowed"}},
    {Errc::timed_out, borrow,
     {"the lender did not answer in time", "", nobody_answered,
      "see whether the lending process runs and dispatches or serves, then try again"}},
    {Errc::timed_out, wait_for_newer,
     {"nothing newer was published in time", "", nothing_newer, "go on with what is there, or wait longer"}},
    {Errc::exporter_gone, borrow,
     {"the lender ended while it was asked", "", exporter_gone, "borrow again once it is back"}},
    {Errc::no_lender, none, {"nobody lends at this endpoint", "", no_lender, "start the lender first, or wait with a later deadline"}},
    {Errc::endpoint_in_use, none,
     {"the endpoint is taken", "", endpoint_in_use, "lend elsewhere, or end what is there"}},
    {Errc::not_permitted, none,
     {"one side does not allow the other", "", not_permitted, "give the lender, or the borrower, another Allow"}},
    {Errc::no_such_offer, none, {"the lender has no such offer", "", no_such_offer, "borrow by the name of a live offer"}},
    {Errc::already_offered, none,
     {"the name is taken in this lender", "", already_offered, "close the other offer, or take another name"}},
    {Errc::still_imported, none,
     {"others still hold the memory", "R20", still_imported,
      "the offer is withdrawn and came back: close it again later, or revoke it"}},
    {Errc::revoked, none,
     {"the lender has taken the memory back", "", revoked, "return the lease and borrow again"}},
    {Errc::bad_message, none,
     {"the other side sent what is no message of lending", "", bad_message, "see what is at the other end of the endpoint"}},
    {Errc::version_mismatch, borrow,
     {"the lender is of another version", "", version, "use the same version of devshare on both sides"}},
    {Errc::refused, none, {"the runtime refused", "", refused_any, "read aclGetRecentErrMsg() and the device log"}},
    {Errc::refused, import_key,
     {"the runtime refused the import", "R13 to R19, R25", refused_import,
      "check the causes in this order; the exporter's side of each is in its own errors"}},
    {Errc::refused, import_handle,
     {"the runtime refused to import the handle", "R27 to R37", refused_handle_import,
      "see which call the error names; the exporter's side of each cause is in its own errors"}},
    {Errc::refused, map_memory,
     {"the runtime refused to map", "R29, R36", refused_map, "keep one device and one kind of memory in a range"}},
    {Errc::refused, unmap_memory,
     {"the runtime refused to unmap", "R5, R38", refused_unmap, "synchronise before unmapping"}},
    {Errc::refused, admit,
     {"the runtime refused to admit", "R13, R17", refused_admit, "admit on the live key, with the importer's bare pid"}},
    {Errc::refused, close_import,
     {"the runtime refused to close the import", "R24", refused_close, "close each import once, by its object"}},
    {Errc::refused, close_export,
     {"the runtime refused to close the export", "R21", refused_close,
      "keep the object that came back; its memory is not freed"}},
    {Errc::refused, bare_pid,
     {"the runtime knows no number for this process", "R14", refused_bare_pid,
      "give the container the device nodes and check that the driver is loaded"}},
    {Errc::refused, synchronize,
     {"a task in the stream failed", "R5", not_done,
      "treat what the stream wrote as unfinished, and see the error's code and aclGetRecentErrMsg()"}},
    {Errc::refused, query_event, {"the runtime refused the question", "R49", refused_event, "synchronise the event instead"}},
    {Errc::refused, disable_peer_access,
     {"the runtime refused to give peer access back", "", refused_disable, "give each grant back once, by its object"}},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() noexcept { return entries; }

}  // namespace detail

Explanation explain(const Error& error) noexcept {
  const auto all = detail::catalogue();
  const auto find = [&](Operation operation) {
    return std::find_if(all.begin(), all.end(), [&](const detail::CatalogueEntry& entry) {
      return entry.kind == error.kind() && entry.operation == operation;
    });
  };
  auto entry = find(error.operation());
  if (entry == all.end()) entry = find(Operation::none);
  // A kind made by a cast from a number that is none: what holds of every refusal is all that can be said.
  if (entry == all.end()) return explain(Error(Errc::refused, Operation::none).with_note(error.note()));
  Explanation text = entry->text;
  text.note = detail::note(error.note());
  return text;
}

}  // namespace devshare
