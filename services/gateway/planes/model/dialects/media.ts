import { isObject, type JsonObject, member } from '@plat/core'
import type { Denial, MediaDemand } from '../../../call/index.ts'
import { secondsAtMost } from '../media/wave.ts'
import type { UploadedFile } from '../uploads/read.ts'
import { isCount, isSet, modelFault, otherModelsFault, wrong } from './checks.ts'
import { type Dialect, inputOnly } from './dialect.ts'
import { openai } from './openai.ts'
import { type ShapeFault, usageFault } from './shapes.ts'

/** Most images of one request, as in OpenAI's API. */
const MAX_IMAGES = 10

const MEDIA_USAGE = { counts: ['input_tokens', 'output_tokens', 'total_tokens'], details: [] } as const

/** Members that are texts or names wherever they are, in fields of forms and in JSON. */
const TEXTS = [
  'model',
  'prompt',
  'size',
  'quality',
  'response_format',
  'input',
  'instructions',
  'user',
  'language',
] as const

/** Members with one value that the gateway reads. Some providers read `n[]` in a form as `n`. */
const SINGLE: ReadonlySet<string> = new Set([...TEXTS, 'n', 'stream', 'stream_format'])

function mediaFault(value: JsonObject, needed: string): Denial | null {
  for (const name of TEXTS)
    if (isSet(value[name]) && typeof value[name] !== 'string') return wrong(name, 'must be a string')
  for (const name of Object.keys(value))
    if (name.includes('[') && SINGLE.has(name.slice(0, name.indexOf('['))))
      return wrong(name, 'must be written without brackets')
  const unnamed = modelFault(value.model)
  if (unnamed !== null) return unnamed
  if (isSet(value.stream) && value.stream !== false && value.stream !== 'false')
    return wrong('stream', 'is not relayed for images and sound: leave it out')
  return otherModelsFault(value) ?? (isSet(value[needed]) ? null : wrong(needed, 'is required'))
}

const media = {
  ...openai,
  asksUsage: false,
  request: (bytes, { model }) => inputOnly(model, bytes),
  maxTokensMember: () => null,
  report: () => null,
  hides: () => false,
} satisfies Partial<Dialect>

const image = {
  ...media,
  operation: 'model.image',
  generated: ['data'],
  encoded: ['b64_json'],
  fault: (value: JsonObject): Denial | null => mediaFault(value, 'prompt') ?? countFault(value),
  answerFault({ data, usage }: JsonObject): ShapeFault {
    if (!Array.isArray(data) || !data.every(isObject)) return 'images without valid data'
    return usageFault(usage, MEDIA_USAGE)
  },
  media({ n, size, quality }: JsonObject): MediaDemand {
    return { unit: 'images', atMost: Number(n ?? 1), size: chosen(size), quality: chosen(quality) }
  },
} satisfies Partial<Dialect>

/** In a form a number is text. */
function countFault({ n }: JsonObject): Denial | null {
  const count = typeof n === 'string' && /^[1-9]\d?$/.test(n) ? Number(n) : n
  return !isSet(n) || isCount(count, MAX_IMAGES) ? null : wrong('n', `must be a whole number from 1 to ${MAX_IMAGES}`)
}

function chosen(option: unknown): string | null {
  return typeof option === 'string' && option !== 'auto' ? option : null
}

/** `images/generations` of OpenAI's API. */
export const imageGenerations: Dialect = { ...image, method: 'images/generations' }

/** `images/edits`: a form with images. */
export const imageEdits: Dialect = {
  ...image,
  method: 'images/edits',
  multipart: true,
  fault: (value) => image.fault(value) ?? partsFault(value, IMAGE_PARTS),
}

const IMAGE_PARTS: ReadonlySet<unknown> = new Set(['image', 'image[]', 'mask'])

/** `audio/speech`: sound from a text. */
export const speech: Dialect = {
  ...media,
  method: 'audio/speech',
  operation: 'model.audio',
  generated: ['error'],
  fault(value) {
    const format = value.stream_format
    if (isSet(format) && format !== 'audio') return wrong('stream_format', 'must be audio: events are not relayed')
    return mediaFault(value, 'input')
  },
  answerFault: () => 'JSON where sound was requested',
  answer: () => 'audio',
  media({ input, instructions }) {
    const count = [input, instructions].reduce<number>((sum, text) => sum + charactersOf(text), 0)
    return { unit: 'characters', atMost: count, size: null, quality: null }
  },
}

/** The units of UTF-16 of a text: at least as many as its characters. */
function charactersOf(text: unknown): number {
  return typeof text === 'string' ? text.length : 0
}

const transcript = {
  ...media,
  operation: 'model.audio',
  multipart: true,
  generated: ['text', 'segments', 'words', 'error'],
  fault: (value: JsonObject): Denial | null => mediaFault(value, 'files') ?? partsFault(value, FILE_PART),
  answerFault({ text, usage, duration }: JsonObject): ShapeFault {
    if (typeof text !== 'string') return 'a transcript without text'
    if (isSet(duration) && !isSeconds(duration)) return 'a transcript with an invalid duration'
    if (member(usage, 'type') === 'duration' && !isSeconds(member(usage, 'seconds')))
      return 'a usage report without seconds'
    return usageFault(usage, MEDIA_USAGE)
  },
  answer: ({ response_format: format }: JsonObject) =>
    typeof format === 'string' && PLAIN_FORMATS.has(format) ? 'text' : 'json',
  media(_: JsonObject, files: readonly UploadedFile[]): MediaDemand {
    return { unit: 'seconds', atMost: secondsAtMost(files), size: null, quality: null }
  },
} satisfies Partial<Dialect>

/** Formats of transcripts that are not JSON. */
const PLAIN_FORMATS: ReadonlySet<string> = new Set(['text', 'srt', 'vtt'])

export function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= 1e9
}

const FILE_PART: ReadonlySet<unknown> = new Set(['file'])

/** A form has at least one file, and only in these parts. */
export function partsFault({ files }: JsonObject, parts: ReadonlySet<unknown>): Denial | null {
  const [first] = parts
  const isKnown = Array.isArray(files) && files.length > 0 && files.every((file) => parts.has(member(file, 'part')))
  return isKnown ? null : wrong(String(first), `must be a file, and the only files are ${[...parts].join(', ')}`)
}

/** `audio/transcriptions` of OpenAI's API. */
export const transcriptions: Dialect = { ...transcript, method: 'audio/transcriptions' }

/** `audio/translations`: the same, in English. */
export const translations: Dialect = { ...transcript, method: 'audio/translations' }
