import { parseStrict } from '@plat/core'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'
import type { Identity } from '../../call/index.ts'

/** A text that nobody but the gateway can make, and nobody but the same session can use. */
export interface Seals {
  seal(caller: Identity, text: string): string
  /** Null for whatever was not sealed for this caller: as if it never existed. */
  open(caller: Identity, text: string): string | null
}

const content = Type.Object({
  planSha256: Type.String(),
  tier: Type.Integer(),
  resources: Type.Integer(),
  /** Milliseconds since the epoch. */
  expiresAt: Type.Integer(),
})

/** One plan that one session may apply. */
export type Authorization = Readonly<Static<typeof content>>

/** Kept by whoever was given it: any replica that has the key of the seal can check it. */
export function issued(seals: Seals, caller: Identity, authorization: Authorization): string {
  return seals.seal(caller, JSON.stringify(authorization))
}

/** Null: it is none of this session, or its time is over at `now`. */
export function standing(seals: Seals, caller: Identity, text: string, now: number): Authorization | null {
  const opened = seals.open(caller, text)
  const value = opened === null ? null : parseStrict(opened)
  return Check(content, value) && value.expiresAt > now ? value : null
}
