import type { Dialer, DialOptions, Residency } from '@plat/http'

/**
 * A dialer whose every connection keeps to the rules in force when it is asked for, whatever it is for. Connections that were opened
 * under other rules are never used again.
 */
export function residentDialer(inner: Dialer, current: () => Residency | null): Dialer {
  /** The dialer knows options again by being the same object. */
  const known = new WeakMap<object, DialOptions>()
  const bound = <O extends DialOptions>(options: O, residency: Residency): O => ({ ...options, residency })
  return {
    client(origin, purpose, options) {
      const residency = current()
      if (residency === null) return inner.client(origin, purpose, options)
      const key = options ?? residency
      const last = known.get(key)
      if (last?.residency === residency) return inner.client(origin, purpose, last)
      const fresh = bound(options ?? {}, residency)
      known.set(key, fresh)
      return inner.client(origin, purpose, fresh)
    },
    fetchBytes(url, purpose, options) {
      const residency = current()
      return inner.fetchBytes(url, purpose, residency === null ? options : bound(options, residency))
    },
    connect(target, purpose, options) {
      const residency = current()
      return inner.connect(target, purpose, residency === null ? options : bound(options, residency))
    },
    close: () => inner.close(),
  }
}
