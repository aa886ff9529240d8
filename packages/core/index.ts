export { formatDuration, parseDuration } from './amounts/duration.ts'
export { parseQuantity, quantityToMicros } from './amounts/quantity.ts'
export { rfc3339, rfc3339Micros } from './amounts/rfc3339.ts'
export { Backoff, type BackoffOptions } from './backoff.ts'
export { decodeBase64url, encodeBase64url } from './base64url.ts'
export { type BuildInfo, buildInfo } from './build.ts'
export { type Clock, keepAlive, systemClock, TestClock } from './clock.ts'
export { ByteBuffer } from './collections/byte-buffer.ts'
export { ExpiringMap, type ExpiringOptions } from './collections/expiring.ts'
export { LinkedMap } from './collections/linked-map.ts'
export { LruCache, type LruCacheOptions } from './collections/lru-cache.ts'
export { type Bagged, NOWHERE, SwapRemoveSet } from './collections/swap-remove-set.ts'
export { base32, type Ids, systemIds } from './ids.ts'
export { canonicalJson } from './json/canonical.ts'
export {
  checkJson,
  JsonError,
  type JsonOptions,
  MAX_JSON_DEPTH,
  MESSAGE_LIMITS,
  parseStrict,
  readStrict,
  type StrictJson,
  skipSpace,
  skipString,
} from './json/check.ts'
export { countValues } from './json/count.ts'
export { isObject, type JsonObject, member, readBody, readJson, readJsonObject, readUtf8 } from './json/document.ts'
export { hasPlainNumbers, losslessSteps, parseLossless, parseStrictLossless } from './json/lossless.ts'
export { nameOf } from './json/names.ts'
export { endOfNumber, MAX_NUMBER_BYTES } from './json/numbers.ts'
export { parseChecked } from './json/parse.ts'
export type { RawJson } from './json/raw.ts'
export {
  compactText,
  ElementValues,
  elementSpans,
  findSpan,
  findValue,
  type Span,
  skipValue,
  withoutElements,
  withoutMembers,
} from './json/spans.ts'
export { PeriodicTask } from './periodic-task.ts'
export {
  type PoolBound,
  type PoolCaller,
  type PoolObserver,
  type PoolObservers,
  poolsOf,
  SharedPool,
  type SharedPoolOptions,
  watchedPool,
} from './pools/shared-pool.ts'
export { type PoolName, type PoolOf, type PoolRow, type PoolService, poolTable } from './pools/table.ts'
export { reasonOf } from './reason.ts'
export { mapInSlices, runAtOnce, runInSlices, Slices, type Steps, slicedSha256 } from './slices.ts'
export { isSpiffeSegment, isTrustDomain, parseSessionSpiffeId, type SessionName, sessionSpiffeId } from './spiffe.ts'
export { closest } from './text/closest.ts'
export { glob } from './text/glob.ts'
export { GlobTable } from './text/glob-table.ts'
export { searchFor, type TextSearch } from './text/search.ts'
export { pathOfTarget, withoutTrailing, withoutTrailingSlash } from './text/trim.ts'
export { isPromise, whenAllReady, whenReady } from './when-ready.ts'
