import { hash } from 'node:crypto'
import { canonicalJson, Slices } from '@plat/core'

/** One tool as offered by a server. */
export interface Offered {
  readonly name: string
  /** SHA-256 of the canonical form of the whole definition; `NO_DIGEST` if it has none. */
  readonly digest: string
  /** The canonical form, for display; null: none, or too long to store. */
  readonly text: string | null
}

/** Digest of a missing definition or one without a canonical form. It is never learned and equals no pin. */
export const NO_DIGEST = 'none'

/** Maximum length of a stored definition, in characters. */
export const DEFINITION_MAX_CHARS = 16_384

/**
 * Returns the digest `sha256:<hex>` of a tool definition. Every member counts (description, schemas, annotations, icons, unknown
 * members); member order and number spelling do not. `tool` comes from `parseLossless`, so numbers beyond 2^53 are distinguished.
 * Returns null if the definition is not valid Unicode and so has no canonical form.
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

/** Returns the tools of a list, computed in slices. Leaves out tools without a name: they cannot be pinned, and no policy can allow calls to them. */
export async function offeredTools(tools: readonly unknown[]): Promise<readonly Offered[]> {
  const offered: Offered[] = []
  const slices = new Slices()
  for (const tool of tools) {
    if (slices.isOver) await slices.next()
    const name = typeof tool === 'object' && tool !== null && 'name' in tool ? tool.name : null
    if (typeof name !== 'string') continue
    const text = canonicalText(tool)
    if (text === null) offered.push({ name, digest: NO_DIGEST, text })
    else offered.push({ name, digest: digestOf(text), text: text.length > DEFINITION_MAX_CHARS ? null : text })
  }
  return offered
}
