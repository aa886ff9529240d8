import type { Resource } from '../kinds/kinds.ts'
import type { WatchEvent } from '../store/store.ts'
import { RestError } from './error.ts'
import { countOf, type Form, formOf, type ReadParts } from './reads.ts'
import { okResponse, type RestRequest, type RestResponse, wireOf } from './rest.ts'
import type { Target } from './route.ts'
import { fieldSelector, labelSelector, type Selector } from './selectors.ts'
import { tableOf } from './table.ts'

/** Default duration of a watch in seconds. */
const WATCH_SECONDS = 1800
/** Maximum duration of a watch in seconds; then the client starts another one. */
const MAX_WATCH_SECONDS = 3600

/** Parameters of a watch. */
interface WatchRequest {
  readonly target: Target
  readonly form: Form
  /** Null: the present state is sent first. */
  readonly from: string | null
  /** The end of the present state is marked with a bookmark. */
  readonly marksInitial: boolean
  readonly bookmarks: boolean
  readonly labels: Selector
  readonly fields: Selector
}

/** Yields changes, one JSON object per line, until the client disconnects or time is up. */
export async function watch(parts: ReadParts, target: Target, request: RestRequest): Promise<RestResponse> {
  const { query } = request
  const requested: WatchRequest = {
    target,
    form: formOf(request),
    from: await fromOf(parts, target, query),
    marksInitial: query.get('sendInitialEvents') === 'true',
    bookmarks: isOn(query, 'allowWatchBookmarks'),
    labels: labelSelector(query.get('labelSelector') ?? ''),
    fields: fieldSelector(query.get('fieldSelector') ?? ''),
  }
  const seconds = Math.min(countOf(query, 'timeoutSeconds') || WATCH_SECONDS, MAX_WATCH_SECONDS)
  return okResponse({}, { body: lines(parts, requested, request.signal, seconds) })
}

/** Returns whether a switch of the query is on. */
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
  requested: WatchRequest,
  left: AbortSignal,
  seconds: number,
): AsyncGenerator<string> {
  const over = new AbortController()
  const cancel = parts.clock.after(seconds * 1000, () => over.abort())
  const signal = AbortSignal.any([left, over.signal])
  const view = new View(requested)
  const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
  let marksInitial = requested.marksInitial
  try {
    for await (const event of parts.store.watch(requested.target.kind, requested.from, signal)) {
      if (event.type === 'GONE') {
        yield line('ERROR', new RestError(410, 'the resourceVersion is too old or of another start: list again').body())
        return
      }
      if (event.type === 'BOOKMARK') {
        if (requested.bookmarks || marksInitial)
          yield line('BOOKMARK', bookmark(requested, event.revision, marksInitial))
        marksInitial = false
        continue
      }
      const type = view.typeOf(event)
      if (type !== null) yield line(type, representation(requested, event.object, event.revision, parts.clock.now()))
    }
  } finally {
    cancel()
  }
}

/** Returns an object at a revision: a deleted one has that of its deletion. */
function representation(
  { target, form }: WatchRequest,
  object: Resource,
  resourceVersion: string,
  now: number,
): object {
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

/** View of a client through its selectors: an object whose labels begin to match is added, one whose labels cease to match is deleted. */
class View {
  readonly #request: WatchRequest
  /** Whether an object matched when it was last sent, by uid. */
  readonly #chosen = new Map<string, boolean>()

  constructor(requested: WatchRequest) {
    this.#request = requested
  }

  /** Returns the event type of a change for this client; null when it is not sent. */
  typeOf({ type, object }: Change): Change['type'] | null {
    const { namespace } = this.#request.target
    const { metadata } = object
    if ((namespace !== '' && metadata.namespace !== namespace) || !this.#request.fields(object)) return null
    const is = this.#request.labels(object)
    // The client may know objects from before this watch.
    const was = this.#chosen.get(metadata.uid) ?? (this.#request.from === null || type === 'ADDED' ? false : null)
    if (type === 'DELETED') {
      this.#chosen.delete(metadata.uid)
      return (was ?? is) ? 'DELETED' : null
    }
    this.#chosen.set(metadata.uid, is)
    if (is) return was === false ? 'ADDED' : 'MODIFIED'
    return was === false ? null : 'DELETED'
  }
}
