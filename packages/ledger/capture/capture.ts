import path from 'node:path'
import { canonicalJson, isSpiffeSegment, parseStrict } from '@plat/core'
import { type Cipher, openBytes, type SealedBytes, sealBytes } from '@plat/keys'

/** Redacted arguments of a call, stored beside the ledger, which has only their hash (docs/spec/gateway.md, `captureArgs`). */
export interface Capture {
  readonly namespace: string
  /** `argsSha256` of the call's records: hash of the unredacted arguments. */
  readonly argsSha256: string
  /** Arguments after redaction. */
  readonly args: Uint8Array
}

const SHA256 = /^[0-9a-f]{64}$/

/** Returns `<dir>/<namespace>/<xx>/<argsSha256>.cap`; `xx` is the beginning of the hash. Returns null for names that are not valid in a path. */
export function capturePath(dir: string, { namespace, argsSha256 }: Omit<Capture, 'args'>): string | null {
  if (!isSpiffeSegment(namespace) || !SHA256.test(argsSha256)) return null
  return path.join(dir, namespace, argsSha256.slice(0, 2), `${argsSha256}.cap`)
}

/** Returns the content of a capture file: one line of canonical JSON. */
export async function sealCapture(
  { namespace, argsSha256, args }: Capture,
  sealing: { readonly cipher: Cipher; random(bytes: number): Uint8Array },
): Promise<string> {
  const sealed = await sealBytes(args, { ...sealing, context: contextOf(namespace, argsSha256) })
  return `${canonicalJson({ v: 1, namespace, argsSha256, ...sealed })}\n`
}

/** Decrypts a capture file. Returns null when it is malformed, modified, or under another key. */
export async function openCapture(text: string, cipher: Cipher): Promise<Capture | null> {
  const value = parsed(text)
  if (!isStored(value)) return null
  const { namespace, argsSha256 } = value
  const args = await openBytes(value, cipher, contextOf(namespace, argsSha256))
  return args === null ? null : { namespace, argsSha256, args }
}

type Stored = SealedBytes & Omit<Capture, 'args'>

const MEMBERS = ['namespace', 'argsSha256', 'kid', 'key', 'nonce', 'data'] as const

function isStored(value: unknown): value is Stored {
  if (typeof value !== 'object' || value === null || !('v' in value) || value.v !== 1) return false
  const members = new Map(Object.entries(value))
  return MEMBERS.every((name) => typeof members.get(name) === 'string')
}

function parsed(text: string): unknown {
  try {
    return parseStrict(text)
  } catch {
    return null
  }
}

function contextOf(namespace: string, argsSha256: string): string {
  return `plat/capture/v1 ${namespace} ${argsSha256}`
}
