import { LruCache } from '@plat/core'
import type { Revocation } from './format.ts'

/** A namespace name of a cluster (RFC 1123). */
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** The AgentRevocation that mirrors a break-glass entry in the cluster. */
export interface MirroredRevocation {
  readonly namespace: string
  readonly name: string
  readonly spec: Readonly<Record<string, unknown>>
}

/** Returns the mirror of an entry. It is in the namespace of its targets, or in `home` if they may be in any. */
export function mirroredRevocation(revocation: Revocation, home: string): MirroredRevocation {
  const { id, target, mode, reason, expiresAt } = revocation
  const [own = ''] = (target.session ?? target.agent ?? target.namespace ?? '').split('/', 1)
  return {
    namespace: LABEL.test(own) ? own : home,
    name: `breakglass-${id}`,
    spec: { target, mode, ...(reason !== '' && { reason }), ...(expiresAt !== null && { expiresAt }) },
  }
}

/** Id that the operator gives to the mirrored entry in `revocationsFile`. */
export function mirroredId(revocation: Revocation, home: string): string {
  const { namespace, name } = mirroredRevocation(revocation, home)
  return `AgentRevocation/${namespace}/${name}`
}

/** How long lifted entries are remembered, in milliseconds: their mirrors may still be in the file. */
const LIFTED_MS = 600_000
/** LRU bound of remembered lifted entries. */
const MAX_LIFTED = 10_000

const COPY = /^AgentRevocation\/[^/]+\/breakglass-(.+)$/

/** Finds mirrors of break-glass entries in the file. Each entry counts once, and a mirror not longer than its original. */
export class Copies {
  readonly #home: string
  /** When each is forgotten, in milliseconds since the epoch, by id of the mirror. */
  readonly #lifted = new LruCache<string, number>({ maxEntries: MAX_LIFTED })

  constructor(home: string) {
    this.#home = home
  }

  idOf(revocation: Revocation): string {
    return mirroredId(revocation, this.#home)
  }

  lifted(revocation: Revocation, now: number): void {
    this.#lifted.set(this.idOf(revocation), now + LIFTED_MS)
  }

  /** Whether an entry of the file mirrors a break-glass entry that is stored here or was. */
  has(id: string, stored: { get(id: string): Revocation | null }): boolean {
    if (this.#lifted.peek(id) !== undefined) return true
    const [, original] = COPY.exec(id) ?? []
    const own = original === undefined ? null : stored.get(original)
    return own !== null && this.idOf(own) === id
  }

  forgetOld(now: number): void {
    for (const [id, until] of this.#lifted) if (until <= now) this.#lifted.delete(id)
  }
}
