import { LruCache } from '@plat/core'
import type { Revocation } from './format.ts'

/** A name of a namespace in a cluster (RFC 1123). */
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** The AgentRevocation that stands for a break-glass entry in the cluster. */
export interface MirroredRevocation {
  readonly namespace: string
  readonly name: string
  readonly spec: Readonly<Record<string, unknown>>
}

/** In the namespace that all whom it names are of; `home` is where what names others stands. */
export function mirroredRevocation(revocation: Revocation, home: string): MirroredRevocation {
  const { id, target, mode, reason, expiresAt } = revocation
  const [own = ''] = (target.session ?? target.agent ?? target.namespace ?? '').split('/', 1)
  return {
    namespace: LABEL.test(own) ? own : home,
    name: `breakglass-${id}`,
    spec: { target, mode, ...(reason !== '' && { reason }), ...(expiresAt !== null && { expiresAt }) },
  }
}

/** What the operator calls the copy in `revocationsFile`. */
export function mirroredId(revocation: Revocation, home: string): string {
  const { namespace, name } = mirroredRevocation(revocation, home)
  return `AgentRevocation/${namespace}/${name}`
}

/** How long what was lifted is remembered, in milliseconds: its copy may still be on its way into the file. */
const LIFTED_MS = 600_000
/** Lifted entries that are remembered; beyond them the one that was lifted first is forgotten. */
const MAX_LIFTED = 10_000

const COPY = /^AgentRevocation\/[^/]+\/breakglass-(.+)$/

/** Copies of break-glass entries that come back in the file: each counts once, and no longer than what it is a copy of. */
export class Copies {
  readonly #home: string
  /** When each is forgotten, in milliseconds since the epoch, by what the operator calls the copy. */
  readonly #lifted = new LruCache<string, number>({ maxEntries: MAX_LIFTED })

  constructor(home: string) {
    this.#home = home
  }

  /** What the operator calls the copy of an entry. */
  idOf(revocation: Revocation): string {
    return mirroredId(revocation, this.#home)
  }

  lifted(revocation: Revocation, now: number): void {
    this.#lifted.set(this.idOf(revocation), now + LIFTED_MS)
  }

  /** Is an entry of the file a copy of one that is kept here, or was? */
  has(id: string, kept: { get(id: string): Revocation | null }): boolean {
    if (this.#lifted.peek(id) !== undefined) return true
    const [, original] = COPY.exec(id) ?? []
    const own = original === undefined ? null : kept.get(original)
    return own !== null && this.idOf(own) === id
  }

  forgetOld(now: number): void {
    for (const [id, until] of this.#lifted) if (until <= now) this.#lifted.delete(id)
  }
}
