import type { Prompt } from './models.ts'
import type { Attributes } from './spans/span.ts'

/** Takes out whatever a profile finds; null: it cannot be read, and nothing of it may be told. */
export type Erase = (json: Uint8Array) => Uint8Array | null

export interface CallContent {
  readonly prompt: Prompt | null
  /** What the model answered; null: not all of it was kept. */
  readonly messages: readonly object[] | null
}

/**
 * What was said in a model call, redacted, under the names of the conventions. What is larger than `maxBytes`, or cannot be redacted, is
 * dropped as a whole and counted.
 */
export function contentOf(
  { prompt, messages }: CallContent,
  { erase, maxBytes }: { readonly erase: Erase; readonly maxBytes: number },
): { readonly attributes: Attributes; readonly dropped: number } {
  const attributes: Record<string, string> = {}
  let dropped = 0
  const tell = (name: string, said: readonly object[] | null) => {
    if (said?.length === 0) return
    const text = said === null ? null : redacted(said, erase, maxBytes)
    if (text === null) dropped++
    else attributes[name] = text
  }
  if (prompt !== null) {
    tell('gen_ai.system_instructions', prompt.instructions)
    tell('gen_ai.input.messages', prompt.messages)
  }
  tell('gen_ai.output.messages', messages)
  return { attributes, dropped }
}

function redacted(said: readonly object[], erase: Erase, maxBytes: number): string | null {
  const json = Buffer.from(JSON.stringify(said))
  if (json.byteLength > maxBytes) return null
  const told = erase(json)
  return told === null || told.byteLength > maxBytes ? null : Buffer.from(told).toString('utf8')
}
