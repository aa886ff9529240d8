import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { useShared } from './session.ts'

/** The data of a request so far. The last data stay while a reload runs or fails. */
export interface Loaded<T> {
  readonly data: T | null
  readonly error: ApiError | null
  readonly loading: boolean
  readonly reload: () => void
}

interface State<T> {
  readonly key: string
  readonly data: T | null
  readonly error: ApiError | null
  readonly loading: boolean
}

interface LoadOptions {
  /** Topics whose reported changes reload the data. */
  readonly topics?: readonly string[]
  readonly isPaused?: () => boolean
}

/** Loads data when the component appears, when `key` changes, and when the gateway reports a change of one of `topics`. */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  options: LoadOptions = {},
): Loaded<T> {
  const { topics = [], isPaused = () => false } = options
  const { live } = useShared()
  const [state, setState] = useState<State<T>>(initial(key))
  const running = useRef(new AbortController())
  const latest = useRef(load)
  latest.current = load
  const start = () => {
    running.current.abort()
    running.current = new AbortController()
    const { signal } = running.current
    setState((before) => (before.key === key ? { ...before, loading: true } : initial(key)))
    latest.current(signal).then(
      (data) => !signal.aborted && setState({ key, data, error: null, loading: false }),
      (error: unknown) =>
        !signal.aborted && setState((before) => ({ ...before, error: asApiError(error), loading: false })),
    )
  }
  useEffect(() => {
    start()
    const off = live.on(topics, () => isPaused() || start())
    return () => {
      off()
      running.current.abort()
    }
  }, [key, live])
  return { ...(state.key === key ? state : initial<T>(key)), reload: start }
}

function initial<T>(key: string): State<T> {
  return { key, data: null, error: null, loading: true }
}

/** Any failure as one with a message for people. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(0, 'unexpected', error instanceof Error ? error.message : String(error))
}

interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

/** Lists with more loaded pages than this are not reloaded by changes. */
const LIVE_PAGES = 5

export interface Pages<T> extends Loaded<readonly T[]> {
  /** Loads the next page; null at the end, or while one loads. */
  readonly more: (() => void) | null
}

/** A list in pages. A reload replaces all pages that were loaded, so that none is missing between two of them. */
export function usePages<T>(
  key: string,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  topics: readonly string[] = [],
): Pages<T> {
  const pages = useRef({ key, count: 1 })
  if (pages.current.key !== key) pages.current = { key, count: 1 }
  const isPaused = () => pages.current.count > LIVE_PAGES
  const loaded = useLoaded(key, (signal) => loadPages(load, pages.current.count, signal), { topics, isPaused })
  const [extra, setExtra] = useState<Extra<T>>({ after: null, page: null, busy: false, error: null })
  const own = extra.after === loaded.data ? extra : { after: loaded.data, page: null, busy: false, error: null }
  const last = own.page ?? loaded.data
  const more = () => {
    const after = loaded.data
    pages.current.count++
    setExtra({ ...own, busy: true, error: null })
    load(last?.nextCursor ?? undefined, new AbortController().signal).then(
      ({ items, nextCursor }) =>
        setExtra({
          after,
          page: { items: [...(own.page?.items ?? []), ...items], nextCursor },
          busy: false,
          error: null,
        }),
      (error: unknown) => setExtra({ ...own, busy: false, error: asApiError(error) }),
    )
  }
  return {
    data: loaded.data === null ? null : [...loaded.data.items, ...(own.page?.items ?? [])],
    error: own.error ?? loaded.error,
    loading: loaded.loading || own.busy,
    reload: loaded.reload,
    more: last === null || last.nextCursor === null || own.busy ? null : more,
  }
}

interface Extra<T> {
  /** The pages that this one follows. */
  readonly after: Page<T> | null
  readonly page: Page<T> | null
  readonly busy: boolean
  readonly error: ApiError | null
}

async function loadPages<T>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>,
  count: number,
  signal: AbortSignal,
): Promise<Page<T>> {
  const items: T[] = []
  let cursor: string | undefined
  for (let at = 0; at < count; at++) {
    const page = await load(cursor, signal)
    items.push(...page.items)
    if (page.nextCursor === null) return { items, nextCursor: null }
    cursor = page.nextCursor
  }
  return { items, nextCursor: cursor ?? null }
}
