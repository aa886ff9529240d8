import { quantityToMicros } from '@plat/core'
import { decodeRendered, mapOf } from '@plat/resources/rendered'
import { type Static, Type } from 'typebox'
import { type Bounds, EnergyTable, type ModelFactors } from './table.ts'

const closed = { additionalProperties: false } as const

/** At most six decimal places, so that every factor is an integer of millionths. */
const decimal = () => Type.String({ pattern: '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$' })
const bounds = () => Type.Object({ min: decimal(), max: decimal() }, closed)

const modelSchema = Type.Object(
  {
    input: Type.Optional(bounds()),
    cachedRead: Type.Optional(bounds()),
    output: Type.Optional(bounds()),
    watts: Type.Optional(bounds()),
  },
  closed,
)

/** Format `energy.file`: Wh per 1,000 tokens and W by model, g CO2e per kWh by region, as decimal strings. */
const energyFileSchema = Type.Object(
  {
    version: Type.Literal(1),
    id: Type.String({ minLength: 1, maxLength: 128 }),
    source: Type.String({ minLength: 1, maxLength: 2048 }),
    models: mapOf(modelSchema),
    regions: Type.Optional(mapOf(bounds())),
  },
  closed,
)

type EnergyFile = Static<typeof energyFileSchema>
type ModelEntry = Static<typeof modelSchema>
type BoundsEntry = Static<ReturnType<typeof bounds>>

/** Decodes an energy file strictly, or returns every problem with its path. */
export function decodeEnergy(bytes: Uint8Array): { readonly table: EnergyTable } | { readonly problems: string[] } {
  const decoded = decodeRendered(energyFileSchema, bytes, () => [])
  if (!decoded.ok) return { problems: decoded.problems }
  const problems = wrongParts(decoded.file)
  if (problems.length > 0) return { problems }
  const { id, models, regions = {} } = decoded.file
  const factors = Object.entries(models).map(([key, entry]) => [key, factorsOf(entry)] as const)
  const intensities = Object.entries(regions).map(([key, entry]) => [key, boundsOf(entry)] as const)
  return { table: new EnergyTable({ id, models: factors, regions: intensities }) }
}

const MODEL_KEY = /^[^/]+\/.+$/

function wrongParts({ models, regions = {} }: EnergyFile): string[] {
  const out: string[] = []
  for (const [key, entry] of Object.entries(models)) {
    const { input, output, cachedRead, watts } = entry
    if (!MODEL_KEY.test(key)) out.push(`models[${key}]: must read <provider>/<model>, with * for any text`)
    if ((input === undefined) !== (output === undefined)) out.push(`models[${key}]: input and output need each other`)
    if (cachedRead !== undefined && input === undefined) out.push(`models[${key}].cachedRead: needs input and output`)
    if (input === undefined && output === undefined && watts === undefined)
      out.push(`models[${key}]: needs input and output, or watts`)
    for (const [name, span] of Object.entries(entry)) out.push(...inverted(`models[${key}].${name}`, span))
  }
  for (const [key, span] of Object.entries(regions)) out.push(...inverted(`regions[${key}]`, span))
  return out
}

function inverted(path: string, span: BoundsEntry): string[] {
  const { min, max } = boundsOf(span)
  return min > max ? [`${path}.max: must be at least min`] : []
}

function factorsOf({ input, cachedRead, output, watts }: ModelEntry): ModelFactors {
  const tokens =
    input === undefined || output === undefined
      ? null
      : { input: boundsOf(input), cachedRead: boundsOf(cachedRead ?? input), output: boundsOf(output) }
  return { tokens, watts: watts === undefined ? null : boundsOf(watts) }
}

function boundsOf({ min, max }: BoundsEntry): Bounds {
  return { min: millionths(min), max: millionths(max) }
}

/** The schema admits only valid texts. */
function millionths(text: string): bigint {
  const value = quantityToMicros(text)
  if (value === null) throw new RangeError(`${text} is not a factor`)
  return BigInt(value)
}
