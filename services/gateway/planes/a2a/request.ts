import { findSpan } from '@plat/core'
import type { Body, WireRequest } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/json.ts'
import type { MethodRow } from './methods.ts'

/** What a request names beside its agent. */
export interface NamedInRequest {
  readonly tasks: readonly string[]
  readonly contexts: readonly string[]
  /** Where its sender wants to be told of a task. */
  readonly pushURLs: readonly string[]
  /** Whether it asks for an event stream. */
  readonly streams: boolean
}

export const NOTHING_NAMED: NamedInRequest = { tasks: [], contexts: [], pushURLs: [], streams: false }

/** What the plane knows of a request beyond the words that all planes share. Kept with it until the answer. */
export class A2aRequest {
  /** Null: a card is asked for, or nothing that is known. */
  readonly row: MethodRow | null
  readonly method: string
  /** The message as the caller wrote it; null: there is none. */
  readonly bytes: Uint8Array | null
  readonly named: NamedInRequest
  /** The page of a list that the agent knows; null: the first. */
  readonly pageToken: string | null
  /** The JSON-RPC id as a value; null: there is none. */
  readonly idValue: string | number | null

  constructor(from: {
    readonly row?: MethodRow | null
    readonly method: string
    readonly bytes?: Uint8Array | null
    readonly named?: NamedInRequest
    readonly pageToken?: string | null
    readonly idValue?: string | number | null
  }) {
    this.row = from.row ?? null
    this.method = from.method
    this.bytes = from.bytes ?? null
    this.named = from.named ?? NOTHING_NAMED
    this.pageToken = from.pageToken ?? null
    this.idValue = from.idValue ?? null
  }

  /** The JSON-RPC id as the caller wrote it, so that an answer carries the same bytes. */
  get id(): Uint8Array {
    const span = this.bytes === null ? null : findSpan(this.bytes, ['id'])
    return span === null || this.bytes === null ? NULL : this.bytes.subarray(span[0], span[1])
  }
}

const NULL = Buffer.from('null')

/** Null for a request that was not read. */
export function noted({ note }: WireRequest): A2aRequest | null {
  return note instanceof A2aRequest ? note : null
}

/** A message whose bytes passed the strict scanner: all of it is what is judged and hashed. */
export class A2aBody implements Body {
  readonly bytes: Uint8Array
  readonly value: unknown

  constructor(bytes: Uint8Array, value: unknown = parsedOrUndefined(bytes)) {
    this.bytes = bytes
    this.value = value
  }

  get args(): Uint8Array {
    return this.bytes
  }

  get argsValue(): unknown {
    return this.value
  }
}
