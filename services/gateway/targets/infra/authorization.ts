import { parseStrict } from '@plat/core'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'
import type { Identity } from '../../call/index.ts'

/** Texts that only the gateway can create, for use by one session. */
export interface Seals {
  seal(caller: Identity, text: string): string
  /** Returns null unless the text was sealed for this caller. */
  open(caller: Identity, text: string): string | null
}

const content = Type.Object({
  planSha256: Type.String(),
  tier: Type.Integer(),
  resources: Type.Integer(),
  /** Milliseconds since the epoch. */
  expiresAt: Type.Integer(),
})

/** Permission of one session to apply one plan. */
export type Authorization = Readonly<Static<typeof content>>

/** Stored by the client: any replica with the sealing key can verify it. */
export function sealAuthorization(seals: Seals, caller: Identity, authorization: Authorization): string {
  return seals.seal(caller, JSON.stringify(authorization))
}

/** Returns null if it is not of this session, or expired at `now`. */
export function openAuthorization(seals: Seals, caller: Identity, text: string, now: number): Authorization | null {
  const opened = seals.open(caller, text)
  const value = opened === null ? null : parseStrict(opened)
  return Check(content, value) && value.expiresAt > now ? value : null
}
