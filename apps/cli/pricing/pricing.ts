import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, parseStrict, reasonOf } from '@plat/core'
import { pricingProblems } from '@plat/gateway/config-files'
import { homeOf, writePrivate } from '../shared/home.ts'
import { CommandError, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printWideList } from '../shared/print.ts'
import { CONTEXT_TOKENS } from './contexts.ts'
import { fromLiteLLM } from './litellm.ts'
import { PRICE_PAGES, PRICES, PRICES_DATE, type Prices, SOUND_PRICES } from './table.ts'

/** A `prices.json` (docs/budgets.md). */
interface PriceFile extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly currency: string
  readonly models: Readonly<Record<string, object>>
}

const LITELLM_SOURCE = 'litellm'

/** The table of this package as a `prices.json`. */
export function packagedPrices(): PriceFile {
  const contexts = contextsByModel()
  const models = Object.entries(PRICES).flatMap(([provider, rows]) =>
    rows.map(([model, input, output, cachedRead, cachedWrite, longInput]) => {
      const [aboveInputTokens, ...long] = longInput ?? [0, '', '']
      const prices = {
        ...pricesOf([input, output, cachedRead, cachedWrite]),
        contextTokens: contexts.get(`${provider}/${model}`),
        ...(longInput !== undefined && { tiers: [{ aboveInputTokens, ...pricesOf(long) }] }),
      }
      return [`${provider}/${model}`, prices] as const
    }),
  )
  return {
    version: 1,
    currency: 'USD',
    id: `plat-${PRICES_DATE}`,
    models: { ...Object.fromEntries(models), ...SOUND_PRICES },
  }
}

function pricesOf([input, output, cachedRead = '', cachedWrite = '']: Prices) {
  return { input, output, ...(cachedRead !== '' && { cachedRead }), ...(cachedWrite !== '' && { cachedWrite }) }
}

function contextsByModel(): ReadonlyMap<string, number> {
  const rows = Object.entries(CONTEXT_TOKENS).flatMap(([provider, contexts]) =>
    contexts.flatMap(([tokens, ...models]) => models.map((model) => [`${provider}/${model}`, tokens] as const)),
  )
  return new Map(rows)
}

/** `plat pricing list`: the prices of this package, with their source. */
export async function pricingList(format: WideFormat, output: Output): Promise<number> {
  const rows = Object.entries(packagedPrices().models).map(([model, prices]) => ({
    model,
    ...prices,
    date: PRICES_DATE,
    source: pageOf(model.slice(0, model.indexOf('/'))),
  }))
  const price = (name: string) => (row: object) => String(Reflect.get(row, name) ?? '-')
  printWideList(output, format, rows, {
    columns: {
      ...{ model: ({ model }) => model, input: price('input'), output: price('output'), cached: price('cachedRead') },
      date: ({ date }) => date,
    },
    further: {
      'cache write': price('cachedWrite'),
      'context tokens': price('contextTokens'),
      source: ({ source }) => source,
    },
  })
  return 0
}

function pageOf(provider: string): string {
  return Object.entries(PRICE_PAGES).find(([name]) => name === provider)?.[1] ?? ''
}

export interface PricingUpdateOptions {
  readonly dir: string
  /** A prices.json, or the price list of LiteLLM; default: the table of this package. */
  readonly from?: string | undefined
  readonly dryRun?: boolean | undefined
}

/**
 * `plat pricing update`: adds and replaces the prices of models in `prices.json`. Prices of other models, tools and sandboxes stay.
 * @throws CommandError if a file is invalid, or has another currency
 */
export async function pricingUpdate(
  { dir, from, dryRun = false }: PricingUpdateOptions,
  output: Output,
): Promise<number> {
  const file = join(homeOf(dir).dir, 'prices.json')
  const source = from === undefined ? packagedPrices() : await readSource(from)
  const before = await readPrices(file, null)
  if (before !== null && before.currency !== source.currency)
    throw new CommandError(`${file} has prices in ${before.currency}, and the source in ${source.currency}`)
  const changes = changesOf(before?.models ?? {}, source.models)
  for (const line of changes) output.out(plain(line))
  const merged = { ...before, ...source, ...withRest(before), models: { ...before?.models, ...source.models } }
  check(file, merged)
  if (!dryRun && (changes.length > 0 || before === null))
    await writePrivate(file, `${JSON.stringify(merged, null, 2)}\n`)
  output.out(`${changes.length} prices changed${dryRun ? ' (nothing was written)' : ` in ${file}`}`)
  if (before === null && !dryRun) output.out('next: restart plat up, which reads a new prices.json at its start')
  return 0
}

/** Everything of the old file but its models and its name. */
function withRest(before: PriceFile | null): object {
  const { models: _models, id: _id, ...rest } = before ?? { models: {}, id: '' }
  return rest
}

function changesOf(before: PriceFile['models'], after: PriceFile['models']): readonly string[] {
  return Object.entries(after).flatMap(([model, prices]) => {
    const old = before[model]
    if (old === undefined) return [`new      ${model}: ${textOf(prices)}`]
    return textOf(old) === textOf(prices) ? [] : [`changed  ${model}: ${textOf(old)} -> ${textOf(prices)}`]
  })
}

/** Input and output of a model, and whether there is more. */
function textOf(prices: object): string {
  const { input = '-', output = '-', ...more }: Readonly<Record<string, unknown>> = { ...prices }
  const rest = Object.entries(more).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return [
    `${String(input)}/${String(output)}`,
    ...rest.map(([name, value]) => `${name} ${JSON.stringify(value)}`),
  ].join(', ')
}

async function readSource(file: string): Promise<PriceFile> {
  const value = await readJson(file)
  if (value === null) throw new CommandError(`${file} does not exist`)
  if (isObject(value) && value.version === undefined) {
    const models = fromLiteLLM(value)
    if (Object.keys(models).length > 0) return { version: 1, currency: 'USD', id: LITELLM_SOURCE, models }
  }
  const prices = await readPrices(file, value)
  if (prices === null) throw new CommandError(`${file} is not a price list`)
  return prices
}

/** @throws CommandError if the file is invalid. Returns null if it does not exist. */
async function readPrices(file: string, known: unknown): Promise<PriceFile | null> {
  const value = known ?? (await readJson(file))
  if (value === null) return null
  check(file, value)
  const { id, currency, models, ...rest }: Readonly<Record<string, unknown>> = isObject(value) ? value : {}
  const entries = Object.entries(isObject(models) ? models : {}).map(([model, prices]) => [model, Object(prices)])
  return { ...rest, id: String(id), currency: String(currency), models: Object.fromEntries(entries) }
}

function check(file: string, value: unknown): void {
  const problems = pricingProblems(Buffer.from(JSON.stringify(value)))
  if (problems.length > 0) throw new CommandError(problems.map((problem) => plain(`${file}: ${problem}`)).join('\n'))
}

/** Null: there is no file. */
async function readJson(file: string): Promise<unknown> {
  const bytes = await readFile(file).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}`)
  })
  if (bytes === null) return null
  try {
    return parseStrict(bytes)
  } catch (error) {
    throw new CommandError(`${file} is not JSON: ${reasonOf(error)}`)
  }
}
