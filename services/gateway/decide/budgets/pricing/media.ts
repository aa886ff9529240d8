import type { Denial, MediaDemand, MediaUse, ModelDemand, Usage } from '../../../call/index.ts'
import { unboundedSound, unpricedMedia } from '../refusals.ts'
import { costOf, type MediaPrices, type ModelPrice } from './price.ts'
import type { PriceTable } from './table.ts'

const MILLION = 1_000_000n
const SECONDS_PER_MINUTE = 60
const ANY = '*'

/** Returns the most that a call costs at an endpoint with this price, in micro-units; null: the price does not say it. */
export function mediaAtMost({ media, perCall }: ModelPrice, demand: MediaDemand): number | null {
  if (media === undefined) return null
  const { unit } = demand
  const count = demand.atMost ?? (media.maxMinutes === null ? null : media.maxMinutes * SECONDS_PER_MINUTE)
  const price = unit === 'images' ? imagePrice(media, demand) : 0
  if (count === null || price === null) return null
  const cost = unitsCost(media, { unit, count }, price)
  return cost === null ? null : cost + perCall
}

function unitsCost(media: MediaPrices, { unit, count }: MediaUse, perImage: number): number | null {
  if (unit === 'images') return count * perImage
  if (unit === 'characters')
    return media.characters === null ? null : Number((BigInt(count) * media.characters + MILLION - 1n) / MILLION)
  return media.perMinute === null ? null : Math.ceil((count * media.perMinute) / SECONDS_PER_MINUTE)
}

/** The most that one image may cost: an option that the caller leaves to the provider may be any of those with a price. */
function imagePrice({ perImage }: MediaPrices, { size, quality }: MediaDemand): number | null {
  if (size !== null && quality !== null)
    return perImage.get(`${size}/${quality}`) ?? perImage.get(size) ?? perImage.get(ANY) ?? null
  const fits = [...perImage].filter(([key]) => {
    const [ofSize, ofQuality = null] = key.split('/')
    if (size !== null && ofSize !== size) return false
    return quality === null || ofQuality === null || ofQuality === quality
  })
  const found = fits.length > 0 ? Math.max(...fits.map(([, price]) => price)) : null
  return found ?? perImage.get(ANY) ?? null
}

/** Returns the most that a call costs at any endpoint that may serve it, or why that is not known. */
export function mediaHold(table: Pick<PriceTable, 'model'>, demand: ModelDemand, media: MediaDemand): number | Denial {
  const prices = [demand.priced, ...demand.otherPriced].map((one) => table.model(one))
  const costs = prices.flatMap((price) => (price === null ? [] : (mediaAtMost(price, media) ?? [])))
  if (costs.length > 0) return Math.max(...costs)
  const isPriced = prices.some((price) => (price?.media?.perMinute ?? null) !== null)
  return media.unit === 'seconds' && media.atMost === null && isPriced
    ? unboundedSound(demand)
    : unpricedMedia(demand, media.unit)
}

/** Units and tokens that a finished call used. */
export interface UsedMedia {
  readonly use: MediaUse
  readonly tokens: (Usage & { readonly images: number }) | null
}

/** Returns the cost of what a call used in micro-units: by tokens where they are reported and have prices, otherwise by unit. Null: unknown. */
export function mediaCost(price: ModelPrice, demand: MediaDemand, { use, tokens }: UsedMedia): number | null {
  const { base, media } = price
  if (tokens === null || base.input === null || base.output === null)
    return mediaAtMost(price, { ...demand, atMost: use.count })
  const ofImages = media?.imageInput ?? base.input
  const extra = Number((BigInt(Math.min(tokens.images, tokens.prompt)) * (ofImages - base.input)) / MILLION)
  return Math.max(0, costOf(price, tokens) + extra)
}
