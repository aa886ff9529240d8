import { type Denial, deny, type Head, type Reply } from '../../../call/index.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { generateContent } from '../dialects/generate.ts'
import { messages } from '../dialects/messages.ts'
import { ModelFrame } from '../frame.ts'

export interface ListedModel {
  readonly id: string
  readonly provider: string
}

/** Most models of one page. */
const MAX_PAGE = 1000
/** Models of a page of Anthropic's API where the caller states no limit. */
const ANTHROPIC_PAGE = 20
/** The same of Google's API. */
const GOOGLE_PAGE = 50
/** Date of models whose release is unknown, as Anthropic documents it. */
const UNKNOWN_DATE = '1970-01-01T00:00:00Z'

interface Page {
  readonly models: readonly ListedModel[]
  readonly hasMore: boolean
}

/** Returns the response with a page of models, in the format of the caller's API; a denial for an invalid page. */
export function listReply(all: readonly ListedModel[], dialect: Dialect, query: string): ListReply | Denial {
  if (dialect === generateContent) return googleList(all, query)
  const isAnthropic = dialect === messages
  const parameters = new URLSearchParams(query)
  const page = pageOf(all, {
    limit: parameters.get('limit'),
    after: parameters.get('after_id') ?? parameters.get('after'),
    before: parameters.get('before_id'),
    usual: isAnthropic ? ANTHROPIC_PAGE : MAX_PAGE,
  })
  if (!('models' in page)) return page
  const data = page.models.map((one) => modelOf(one, isAnthropic))
  const ends = {
    has_more: page.hasMore,
    first_id: page.models.at(0)?.id ?? null,
    last_id: page.models.at(-1)?.id ?? null,
  }
  return replyOf({ ...(!isAnthropic && { object: 'list' }), data, ...ends })
}

/** Returns the response with one model. */
export function modelReply(model: ListedModel, dialect: Dialect): ListReply {
  return replyOf(dialect === generateContent ? googleModel(model) : modelOf(model, dialect === messages))
}

/** A page of Google's API; the name of the last model is the token of the next page. */
function googleList(all: readonly ListedModel[], query: string): ListReply | Denial {
  const parameters = new URLSearchParams(query)
  const page = pageOf(all, {
    limit: parameters.get('pageSize'),
    after: parameters.get('pageToken'),
    before: null,
    usual: GOOGLE_PAGE,
  })
  if (!('models' in page)) return page
  const next = page.hasMore ? { nextPageToken: page.models.at(-1)?.id } : null
  return replyOf({ models: page.models.map(googleModel), ...next })
}

function googleModel({ id }: ListedModel): object {
  return { name: `models/${id}`, displayName: id, supportedGenerationMethods: ['generateContent', 'countTokens'] }
}

type ListReply = Extract<Reply, { kind: 'frames' }>

function replyOf(value: object): ListReply {
  const head: Head = { status: 200, headers: { 'content-type': 'application/json' } }
  return { kind: 'frames', head, frames: [ModelFrame.body(Buffer.from(JSON.stringify(value)))], attempts: [] }
}

function modelOf({ id, provider }: ListedModel, isAnthropic: boolean): object {
  return isAnthropic
    ? { type: 'model', id, display_name: id, created_at: UNKNOWN_DATE }
    : { id, object: 'model', created: 0, owned_by: provider }
}

/** Parameters of a page; null: not stated. */
interface PageRequest {
  readonly limit: string | null
  readonly after: string | null
  readonly before: string | null
  readonly usual: number
}

function pageOf(all: readonly ListedModel[], { limit: stated, after, before, usual }: PageRequest): Page | Denial {
  const limit = limitOf(stated, usual)
  if (limit === null) return invalid('limit', `must be a whole number from 1 to ${MAX_PAGE}`)
  const placeOf = (id: string) => all.findIndex((one) => one.id === id)
  if (after !== null && before !== null) return invalid('after_id', 'and before_id exclude one another')
  if (before !== null) {
    const end = placeOf(before)
    if (end === -1) return invalid('before_id', 'is not in the list')
    return { models: all.slice(Math.max(0, end - limit), end), hasMore: end > limit }
  }
  const start = after === null ? 0 : placeOf(after) + 1
  if (after !== null && start === 0) return invalid('after_id', 'is not in the list')
  return { models: all.slice(start, start + limit), hasMore: start + limit < all.length }
}

function limitOf(text: string | null, usual: number): number | null {
  if (text === null) return usual
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  return limit >= 1 && limit <= MAX_PAGE ? limit : null
}

function invalid(param: string, why: string): Denial {
  return deny('invalid_request', `${param} ${why}`, { data: { param } })
}
