import { quantityToMicros, withoutTrailing } from '@plat/core'
import { decodeRendered, mapOf } from '@plat/resources/rendered'
import { type Static, Type } from 'typebox'
import type { ModelPrice, Rates } from './price.ts'
import type { SandboxPrice } from './sandbox.ts'
import { PriceTable } from './table.ts'

const closed = { additionalProperties: false } as const

/** A decimal with at most six places, so that every price is a whole number of micro-units. */
const amount = () => Type.String({ pattern: '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$' })
const price = () => Type.Optional(amount())

const rates = {
  input: price(),
  output: price(),
  cachedRead: price(),
  cachedWrite: price(),
  cachedWrite1h: price(),
  reasoning: price(),
}
const tierSchema = Type.Object({ aboveInputTokens: Type.Integer({ minimum: 0 }), ...rates }, closed)
const modelSchema = Type.Object(
  {
    ...rates,
    perImage: Type.Optional(mapOf(amount())),
    characters: price(),
    perMinute: price(),
    maxMinutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    imageInput: price(),
    // Tokens of sound are not reported separately; their prices are accepted so that a complete table is valid.
    audioInput: price(),
    audioOutput: price(),
    perCall: price(),
    contextTokens: Type.Optional(Type.Integer({ minimum: 1 })),
    multipliers: Type.Optional(mapOf(amount())),
    tiers: Type.Optional(Type.Array(tierSchema, { maxItems: 16 })),
  },
  closed,
)

/** Format `pricingFile`: prices per 1,000,000 tokens, per call and per sandbox hour, as decimal strings. */
const pricingFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    currency: Type.String({ pattern: '^[A-Z]{3}$' }),
    id: Type.String({ minLength: 1, maxLength: 128 }),
    models: Type.Optional(mapOf(modelSchema)),
    tools: Type.Optional(mapOf(Type.Object({ perCall: amount() }, closed))),
    sandbox: Type.Optional(Type.Object({ cpuHour: price(), memoryGiBHour: price(), gpuHour: price() }, closed)),
  },
  closed,
)

type PricingFile = Static<typeof pricingFileSchema>
type RatesEntry = Omit<Static<typeof tierSchema>, 'aboveInputTokens'>
type ModelEntry = Static<typeof modelSchema>

/** Decodes a pricingFile strictly. Returns every problem with its path if there is one. */
export function decodePricing(bytes: Uint8Array): { readonly table: PriceTable } | { readonly problems: string[] } {
  const decoded = decodeRendered(pricingFileSchema, bytes, () => [])
  if (!decoded.ok) return { problems: decoded.problems }
  const { id, currency, models = {}, tools = {}, sandbox } = decoded.file
  const problems = wrongParts(decoded.file)
  if (problems.length > 0) return { problems }
  const modelPrices = Object.entries(models).map(([key, entry]) => [canonical(key), priceOf(entry)] as const)
  const toolPrices = Object.entries(tools).map(([key, entry]) => [key, microsOf(entry.perCall)] as const)
  return { table: new PriceTable({ id, currency, models: modelPrices, tools: toolPrices, sandbox: hoursOf(sandbox) }) }
}

/** Options selected by callers that change the price. */
const OPTION = /^(?:(?:service_tier|speed|inference_geo)=[A-Za-z0-9_-]{1,64}|batch=true)$/
const OPTION_FORM = 'service_tier=<value>, speed=<value>, inference_geo=<value> or batch=true'

/** Key of a price of images: `1024x1024`, `1024x1024/high`, or `*` for every other. */
const IMAGE = /^(?:\*|[A-Za-z0-9_-]{1,64}(?:\/[A-Za-z0-9_-]{1,64})?)$/

const MODEL_KEY = /^(?:llm\/(?<route>[^/#*]+)#)?(?:(?<upstream>https?:\/\/[^#*\s]+)#)?(?<provider>[^/#*]+)\/[^#]+$/
const MODEL_KEY_FORM = '[llm/<route>#][<upstream>#]<provider>/<model>, with * only in the model'

/** The parts of a model's price key. */
export interface PriceKey {
  /** Null: every route. */
  readonly route: string | null
  /** A base URL, or an origin without a trailing slash; null: every upstream. */
  readonly upstream: string | null
  readonly provider: string
}

/** Returns null if the key is malformed. */
export function priceKeyOf(key: string): PriceKey | null {
  const { route = null, upstream = null, provider = '' } = MODEL_KEY.exec(key)?.groups ?? {}
  if (provider === '' || (upstream !== null && !URL.canParse(upstream))) return null
  return { route, upstream: upstream === null ? null : withoutTrailing(new URL(upstream).href, '/'), provider }
}

/** The key in the form that endpoints build. */
function canonical(key: string): string {
  const upstream = priceKeyOf(key)?.upstream ?? null
  const written = upstream === null ? null : MODEL_KEY.exec(key)?.groups?.upstream
  return upstream === null || written === undefined || written === null ? key : key.replace(written, () => upstream)
}

/** Built-in servers of the gateway have no namespace. */
const TOOL_KEY = /^(?:[^/*]+\/[^/*]+|plat-[^/*]+)\/.+$/

function wrongParts({ models = {}, tools = {} }: PricingFile): string[] {
  const out: string[] = []
  const seen = new Set<string>()
  for (const [key, { tiers = [], multipliers = {}, perImage = {} }] of Object.entries(models)) {
    for (const size of Object.keys(perImage))
      if (!IMAGE.test(size)) out.push(`models[${key}].perImage[${size}]: must read <size>, <size>/<quality> or *`)
    for (const option of Object.keys(multipliers))
      if (!OPTION.test(option)) out.push(`models[${key}].multipliers[${option}]: must read ${OPTION_FORM}`)
    if (priceKeyOf(key) === null) out.push(`models[${key}]: must read ${MODEL_KEY_FORM}`)
    if (seen.has(canonical(key))) out.push(`models[${key}]: duplicate of an earlier key`)
    seen.add(canonical(key))
    for (const [index, { aboveInputTokens }] of tiers.entries()) {
      const below = tiers[index - 1]
      if (below !== undefined && below.aboveInputTokens >= aboveInputTokens) {
        out.push(`models[${key}].tiers[${index}].aboveInputTokens: must be larger than in the previous tier`)
      }
    }
  }
  for (const key of Object.keys(tools)) {
    if (!TOOL_KEY.test(key)) out.push(`tools[${key}]: must read <namespace>/<server>/<tool>, with * only in the tool`)
  }
  return out
}

function hoursOf(sandbox: PricingFile['sandbox']): SandboxPrice | null {
  if (sandbox === undefined) return null
  const { cpuHour = '0', memoryGiBHour = '0', gpuHour = '0' } = sandbox
  const micros = (text: string) => BigInt(microsOf(text))
  return { cpuHour: micros(cpuHour), memoryGiBHour: micros(memoryGiBHour), gpuHour: micros(gpuHour) }
}

function priceOf(entry: ModelEntry): ModelPrice {
  const { perCall = '0', tiers = [], multipliers = {}, contextTokens } = entry
  return {
    ...(contextTokens !== undefined && { contextTokens }),
    ...mediaOf(entry),
    base: ratesOf(entry, NO_RATES),
    tiers: tiers.map((tier) => ({
      aboveInputTokens: tier.aboveInputTokens,
      rates: ratesOf(tier, ratesOf(entry, NO_RATES)),
    })),
    perCall: microsOf(perCall),
    multipliers: new Map(Object.entries(multipliers).map(([option, factor]) => [option, BigInt(microsOf(factor))])),
  }
}

/** Prices of images and sound, if there are any. */
function mediaOf({
  perImage = {},
  characters,
  perMinute,
  maxMinutes,
  imageInput,
}: ModelEntry): Pick<ModelPrice, 'media'> {
  const micros = (text: string | undefined) => (text === undefined ? null : microsOf(text))
  const rate = (text: string | undefined) => (text === undefined ? null : BigInt(microsOf(text)))
  const images = new Map(Object.entries(perImage).map(([key, text]) => [key, microsOf(text)]))
  if (images.size === 0 && [characters, perMinute, imageInput].every((one) => one === undefined)) return {}
  return {
    media: {
      ...{ perImage: images, characters: rate(characters), perMinute: micros(perMinute) },
      ...{ maxMinutes: maxMinutes ?? null, imageInput: rate(imageInput) },
    },
  }
}

const NO_RATES: Rates = {
  input: null,
  output: null,
  cachedRead: null,
  cachedWrite: null,
  cachedWrite1h: null,
  reasoning: null,
}

/**
 * A tier inherits what it does not name from the base. A kind that falls back to another uses the tier's rate, so that omissions never
 * make long prompts cheaper.
 */
function ratesOf(entry: RatesEntry, base: Rates): Rates {
  const rate = (text: string | undefined, otherwise: bigint | null) =>
    text === undefined ? otherwise : BigInt(microsOf(text))
  const input = rate(entry.input, base.input)
  const output = rate(entry.output, base.output)
  return {
    input,
    output,
    cachedRead: rate(entry.cachedRead, entry.input === undefined ? base.cachedRead : input),
    cachedWrite: rate(entry.cachedWrite, base.cachedWrite),
    cachedWrite1h: rate(entry.cachedWrite1h, base.cachedWrite1h ?? null),
    reasoning: rate(entry.reasoning, entry.output === undefined ? base.reasoning : output),
  }
}

/** The schema guarantees the form. */
function microsOf(text: string): number {
  const micros = quantityToMicros(text)
  if (micros === null) throw new RangeError(`invalid price ${text}`)
  return micros
}
