// SPDX-License-Identifier: Apache-2.0
// A StreamRef of a Stream that ends at once.
// reason: the stream ends with the temporary: keep it in a named object
#include <devshare/stream.hpp>

using namespace devshare;

Stream make();

StreamRef right(const Stream& stream) { return stream.ref(); }

#ifdef DEVSHARE_BAD
StreamRef mistake_1() { return make().ref(); }
#endif
#ifdef DEVSHARE_BAD
void take(const StreamRef&);
void mistake_2() { take(make()); }
#endif
