import { hash } from 'node:crypto'
import { canonicalJson } from '@plat/core'

/** One tool as a server offers it. */
export interface Offered {
  readonly name: string
  /** SHA-256 of the canonical form of the whole definition; `NO_DIGEST` where it has none. */
  readonly digest: string
  /** The canonical form, for people to read; null: none, or too long to be kept. */
  readonly text: string | null
}

/** Stands for the digest of a definition without a canonical form, or of none; it is never learned, and no pin reads like it. */
export const NO_DIGEST = 'none'

/** Characters of a definition that is kept for people to read. */
export const DEFINITION_MAX_CHARS = 16_384

/**
 * The digest of a tool's definition, `sha256:<hex>`: every member counts (wording, schemas, annotations, icons, what nobody
 * knows yet), the order of members and the spelling of numbers do not. `tool` comes from `parseLossless`, so that numbers
 * beyond 2^53 differ where their text does. Null where the definition has no canonical form: text that is no Unicode.
 */
export function definitionDigest(tool: unknown): string | null {
  const text = canonicalText(tool)
  return text === null ? null : digestOf(text)
}

function digestOf(text: string): string {
  return `sha256:${hash('sha256', text, 'hex')}`
}

function canonicalText(tool: unknown): string | null {
  try {
    return canonicalJson(tool)
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}

/** The tools of a list. What has no name is left out: nothing can be pinned to it, and nobody can call it by policy. */
export function offeredTools(tools: readonly unknown[]): readonly Offered[] {
  const offered: Offered[] = []
  for (const tool of tools) {
    const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : null
    if (typeof name !== 'string') continue
    const text = canonicalText(tool)
    if (text === null) offered.push({ name, digest: NO_DIGEST, text })
    else offered.push({ name, digest: digestOf(text), text: text.length > DEFINITION_MAX_CHARS ? null : text })
  }
  return offered
}
