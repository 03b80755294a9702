// SPDX-License-Identifier: Apache-2.0
// Everything that shares memory. Asked for by name only: devshare/format.hpp (text, needs fmt) and devshare/host.hpp
// (the host runtime's instrument).
#pragma once

#include <devshare/address.hpp>
#include <devshare/allow.hpp>
#include <devshare/borrow.hpp>
#include <devshare/choose.hpp>
#include <devshare/copy.hpp>
#include <devshare/deadline.hpp>
#include <devshare/device.hpp>
#include <devshare/diagnostic.hpp>
#include <devshare/endpoint.hpp>
#include <devshare/error.hpp>
#include <devshare/event.hpp>
#include <devshare/explain.hpp>
#include <devshare/exported.hpp>
#include <devshare/host_pages.hpp>
#include <devshare/host_registration.hpp>
#include <devshare/imported.hpp>
#include <devshare/imported_handle.hpp>
#include <devshare/lend.hpp>
#include <devshare/mapping.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/memory.hpp>
#include <devshare/notify.hpp>
#include <devshare/peer.hpp>
#include <devshare/physical.hpp>
#include <devshare/process.hpp>
#include <devshare/rehouse.hpp>
#include <devshare/reservation.hpp>
#include <devshare/result.hpp>
#include <devshare/runtime.hpp>
#include <devshare/shared_event.hpp>
#include <devshare/stream.hpp>
#include <devshare/stream_copy.hpp>
#include <devshare/sync_ticket.hpp>
#include <devshare/ticket.hpp>
#include <devshare/value.hpp>
