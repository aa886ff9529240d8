import { isObject, type JsonObject } from '@plat/core'

/** Receives texts one by one. */
export interface TextSink {
  add(text: string): void
}

/** Tokens that a message has beside its texts, such as its role. */
const PER_MESSAGE = 4

/** Members of requests whose texts the model reads. */
const PROMPT = [
  'messages',
  'input',
  'contents',
  'system',
  'instructions',
  'systemInstruction',
  'prompt',
  'requests',
] as const
/** Definitions of tools and formats, which the model reads much as they are written. */
const DEFINITIONS = ['tools', 'functions', 'response_format', 'text', 'output_config'] as const
/** Members whose values are not text for the model: kinds, identifiers, references and encoded content. */
const NO_TEXT: ReadonlySet<string> = new Set([
  ...['type', 'role', 'id', 'object', 'model', 'index', 'status', 'phase', 'cache_control', 'logprobs', 'annotations'],
  ...['tool_call_id', 'tool_use_id', 'call_id', 'item_id', 'response_id', 'responseId', 'modelVersion', 'obfuscation'],
  ...['finish_reason', 'finishReason', 'stop_reason', 'system_fingerprint', 'service_tier', 'encrypted_content'],
  ...['data', 'url', 'image_url', 'file_data', 'file_id', 'fileUri', 'signature', 'thoughtSignature', 'taskType'],
  ...['mimeType', 'media_type', 'format', 'detail', 'usage', 'usageMetadata'],
])
/** Members with JSON that the model writes or reads as text. */
const WRITTEN: ReadonlySet<string> = new Set(['arguments', 'args', 'input', 'response', 'output'])

/** Adds the texts of a request. Returns tokens beside them: of the frames of its messages. */
export function addPrompt(request: JsonObject, sink: TextSink): number {
  let messages = 0
  for (const name of PROMPT) {
    const value = request[name]
    if (Array.isArray(value)) messages += value.filter(isObject).length
    else if (typeof value === 'string') messages++
    addTexts(value, sink)
  }
  for (const name of DEFINITIONS)
    if (isObject(request[name]) || Array.isArray(request[name])) sink.add(JSON.stringify(request[name]))
  return messages * PER_MESSAGE
}

/** Adds every text below a value that a model reads or has written. */
export function addTexts(value: unknown, sink: TextSink): void {
  if (typeof value === 'string') sink.add(value)
  else if (Array.isArray(value)) for (const one of value) addTexts(one, sink)
  else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (NO_TEXT.has(name)) continue
      if (isObject(member) && WRITTEN.has(name)) sink.add(JSON.stringify(member))
      else addTexts(member, sink)
    }
  }
}
