import type { Prompt } from './models.ts'
import type { Attributes } from './spans/span.ts'

/** Redacts the findings of a profile. Results in null if the content cannot be read and must not be exported. */
export type Erase = (json: Uint8Array) => Uint8Array | null | Promise<Uint8Array | null>

export interface CallContent {
  readonly prompt: Prompt | null
  /** Output messages of the model; null if they were not kept completely. */
  readonly messages: readonly object[] | null
}

/**
 * Results in the redacted content of a model call as attributes of the conventions. Content that is larger than `maxBytes`, or cannot be
 * redacted, is dropped as a whole and counted.
 */
export async function contentOf(
  { prompt, messages }: CallContent,
  { erase, maxBytes }: { readonly erase: Erase; readonly maxBytes: number },
): Promise<{ readonly attributes: Attributes; readonly dropped: number }> {
  const attributes: Record<string, string> = {}
  let dropped = 0
  const add = async (name: string, messages: readonly object[] | null) => {
    if (messages?.length === 0) return
    const text = messages === null ? null : await redacted(messages, erase, maxBytes)
    if (text === null) dropped++
    else attributes[name] = text
  }
  if (prompt !== null) {
    await add('gen_ai.system_instructions', prompt.instructions)
    await add('gen_ai.input.messages', prompt.messages)
  }
  await add('gen_ai.output.messages', messages)
  return { attributes, dropped }
}

async function redacted(messages: readonly object[], erase: Erase, maxBytes: number): Promise<string | null> {
  const json = Buffer.from(JSON.stringify(messages))
  if (json.byteLength > maxBytes) return null
  const erased = await erase(json)
  return erased === null || erased.byteLength > maxBytes ? null : Buffer.from(erased).toString('utf8')
}
