import type { Resource } from '../kinds/kinds.ts'
import type { WatchEvent } from '../store/store.ts'
import { RestError } from './error.ts'
import { countOf, type Form, formOf, type ReadParts } from './reads.ts'
import { answered, type RestRequest, type RestResponse, wireOf } from './rest.ts'
import type { Target } from './route.ts'
import { fieldSelector, labelSelector, type Selector } from './selectors.ts'
import { tableOf } from './table.ts'

/** How long a watch stays open where the client does not say, in seconds. */
const WATCH_SECONDS = 1800
/** Longest that a client can keep it open; it begins again then. In seconds. */
const MAX_WATCH_SECONDS = 3600

/** What a watch is asked for. */
interface WatchRequest {
  readonly target: Target
  readonly form: Form
  /** Null: the present state is told first. */
  readonly from: string | null
  /** Whoever asks for the present state so is told where it ends. */
  readonly marksInitial: boolean
  readonly bookmarks: boolean
  readonly labels: Selector
  readonly fields: Selector
}

/** Changes as they happen, one JSON object a line, until the client leaves or its time is over. */
export async function watch(parts: ReadParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const { query } = request
  const asked: WatchRequest = {
    target,
    form: formOf(request),
    from: await fromOf(parts, target, query),
    marksInitial: query.get('sendInitialEvents') === 'true',
    bookmarks: isOn(query, 'allowWatchBookmarks'),
    labels: labelSelector(query.get('labelSelector') ?? ''),
    fields: fieldSelector(query.get('fieldSelector') ?? ''),
  }
  const seconds = Math.min(countOf(query, 'timeoutSeconds') || WATCH_SECONDS, MAX_WATCH_SECONDS)
  return answered({}, { body: lines(parts, asked, request.signal, seconds) })
}

/** Is a switch of the query on? */
export function isOn(query: URLSearchParams, name: string): boolean {
  const text = query.get(name)
  return text === 'true' || text === '1'
}

async function fromOf({ store }: ReadParts, { kind }: Target, query: URLSearchParams): Promise<string | null> {
  const revision = query.get('resourceVersion') ?? ''
  if (revision !== '' && !/^\d+$/.test(revision)) {
    throw new RestError(400, `resourceVersion: Invalid value: "${revision}": must be decimal`)
  }
  if (query.get('sendInitialEvents') === 'true') return null
  if (revision !== '' && revision !== '0') return revision
  return query.get('sendInitialEvents') === 'false' ? (await store.list(kind, { limit: 1 })).revision : null
}

async function* lines(
  parts: ReadParts,
  asked: WatchRequest,
  left: AbortSignal,
  seconds: number,
): AsyncGenerator<string> {
  const over = new AbortController()
  const cancel = parts.clock.after(seconds * 1000, () => over.abort())
  const signal = AbortSignal.any([left, over.signal])
  const view = new View(asked)
  const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
  let marksInitial = asked.marksInitial
  try {
    for await (const event of parts.store.watch(asked.target.kind, asked.from, signal)) {
      if (event.type === 'GONE') {
        yield line('ERROR', new RestError(410, 'the resourceVersion is too old or of another start: list again').body())
        return
      }
      if (event.type === 'BOOKMARK') {
        if (asked.bookmarks || marksInitial) yield line('BOOKMARK', bookmark(asked, event.revision, marksInitial))
        marksInitial = false
        continue
      }
      const type = view.typeOf(event)
      if (type !== null) yield line(type, shown(asked, event.object, event.revision, parts.clock.now()))
    }
  } finally {
    cancel()
  }
}

/** An object at a revision: one that was deleted has that of its end. */
function shown({ target, form }: WatchRequest, object: Resource, resourceVersion: string, now: number): object {
  const there = { ...object, metadata: { ...object.metadata, resourceVersion } }
  return form === 'objects'
    ? wireOf(there)
    : tableOf(target.kind, [there], { ...form, metadata: { resourceVersion }, now })
}

function bookmark({ target, form }: WatchRequest, resourceVersion: string, endsInitial: boolean): object {
  const annotations = { 'k8s.io/initial-events-end': 'true' }
  const metadata = { resourceVersion, creationTimestamp: null, ...(endsInitial && { annotations }) }
  if (form !== 'objects') return tableOf(target.kind, [], { ...form, metadata, now: 0 })
  return { kind: target.kind, apiVersion: 'plat.dev/v1alpha1', metadata }
}

type Change = Exclude<WatchEvent<Resource['kind']>, { type: 'BOOKMARK' | 'GONE' }>

/** What a client sees through its selectors: an object that its labels lead in is added, one that they lead out is deleted. */
class View {
  readonly #asked: WatchRequest
  /** Was an object chosen when it was last told? By uid. */
  readonly #chosen = new Map<string, boolean>()

  constructor(asked: WatchRequest) {
    this.#asked = asked
  }

  /** As what a change is told; null: not at all. */
  typeOf({ type, object }: Change): Change['type'] | null {
    const { namespace } = this.#asked.target
    const { metadata } = object
    if ((namespace !== '' && metadata.namespace !== namespace) || !this.#asked.fields(object)) return null
    const is = this.#asked.labels(object)
    // Of an object from before the beginning of this watch the client knows more than we do.
    const was = this.#chosen.get(metadata.uid) ?? (this.#asked.from === null || type === 'ADDED' ? false : null)
    if (type === 'DELETED') {
      this.#chosen.delete(metadata.uid)
      return (was ?? is) ? 'DELETED' : null
    }
    this.#chosen.set(metadata.uid, is)
    if (is) return was === false ? 'ADDED' : 'MODIFIED'
    return was === false ? null : 'DELETED'
  }
}
