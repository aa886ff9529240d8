import { hash } from 'node:crypto'
import type { RedactedView } from '../../../call/index.ts'
import type { Preview } from '../store/events.ts'
import { shapeOf } from './shape.ts'

export interface PreviewOptions {
  readonly mode: 'none' | 'hash' | 'redacted' | 'full'
  /** Maximum length of the text, in bytes. */
  readonly maxBytes: number
}

/** Limit of whole arguments beside a truncated preview. */
export interface WholeOptions extends PreviewOptions {
  /** Maximum length of the stored text, in bytes. */
  readonly maxStoredBytes: number
}

/** Removes from arguments everything that any detector finds. Results in null if they are too long or not strict JSON. */
export type RedactAll = (args: Uint8Array) => Uint8Array | null | Promise<Uint8Array | null>

/**
 * Returns the arguments as approvers see them. Mode `redacted` shows the output of data-loss prevention; if that did not inspect them
 * (`redacted` null), the arguments redacted by all detectors; if those cannot parse them, their shape, marked as truncated. Only mode `full`
 * shows raw arguments.
 */
export function previewOf(
  args: Uint8Array | null,
  { mode, maxBytes }: PreviewOptions,
  redacted: RedactedView | null = null,
  allRedacted: Uint8Array | null = null,
): Preview {
  if (mode === 'none' || args === null) return null
  if (mode === 'hash') return { mode, text: `sha256:${hash('sha256', args, 'hex')}`, truncated: false }
  const presented = presentedBy(args, mode, redacted, allRedacted)
  if (presented !== null) return { mode, ...cut(presented, maxBytes) }
  return { mode, ...cut(Buffer.from(shapeOf(args, maxBytes)), maxBytes), truncated: true }
}

/** Returns the whole arguments as approvers may see them if they exceed the preview and can be stored, otherwise null. */
export function wholeOf(
  args: Uint8Array | null,
  { mode, maxBytes, maxStoredBytes }: WholeOptions,
  redacted: RedactedView | null = null,
  allRedacted: Uint8Array | null = null,
): string | null {
  if (args === null || mode === 'none' || mode === 'hash') return null
  const presented = presentedBy(args, mode, redacted, allRedacted)
  if (presented === null || presented.byteLength <= maxBytes || presented.byteLength > maxStoredBytes) return null
  return Buffer.from(presented.buffer, presented.byteOffset, presented.byteLength).toString('utf8')
}

/** Returns null if only the shape of the arguments may be seen. */
function presentedBy(
  args: Uint8Array,
  mode: 'redacted' | 'full',
  redacted: RedactedView | null,
  allRedacted: Uint8Array | null,
): Uint8Array | null {
  if (mode === 'full') return args
  return redacted === null ? allRedacted : Buffer.from(redacted.text)
}

/** Truncates to `maxBytes` at a character boundary. */
function cut(bytes: Uint8Array, maxBytes: number): { text: string; truncated: boolean } {
  let end = Math.min(bytes.byteLength, maxBytes)
  const continues = (at: number) => ((bytes[at] ?? 0) & 0xc0) === 0x80
  while (end > 0 && end < bytes.byteLength && continues(end)) end--
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, end).toString('utf8')
  return { text, truncated: end < bytes.byteLength }
}
