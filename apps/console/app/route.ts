import { useEffect, useState } from 'preact/hooks'

/** Where the console is served. */
const BASE = '/console/'

/** A page of the console, and the object that it is about. */
export interface Route {
  readonly page: string
  /** Null: the list. */
  readonly id: string | null
  readonly query: URLSearchParams
}

/** The address of a page. IDs stay one segment, whatever they contain. */
export function linkTo(page: string, id?: string | number, query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''))
  const path = id === undefined ? page : `${page}/${encodeURIComponent(String(id))}`
  return `${BASE}${path}${search.size === 0 ? '' : `?${search}`}`
}

/** Reads an address; unknown pages are returned as they are. */
export function readRoute({ pathname, search }: { readonly pathname: string; readonly search: string }): Route {
  const [page = '', ...rest] = pathname.startsWith(BASE) ? pathname.slice(BASE.length).split('/') : []
  return {
    page,
    id: rest.length === 0 || rest[0] === '' ? null : decoded(rest.join('/')),
    query: new URLSearchParams(search),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Goes to an address of the console. `replace`: without an entry in the history, as for filters. */
export function goTo(url: string, { replace = false } = {}): void {
  if (replace) window.history.replaceState(null, '', url)
  else window.history.pushState(null, '', url)
  if (!replace) isMoved = true
  window.dispatchEvent(new PopStateEvent('popstate'))
}

/** Whether a page was opened from another one, and its heading has not been announced yet. */
let isMoved = false

/** Returns true for the first heading after a page was opened from another one: it receives the focus. */
export function takeMoved(): boolean {
  const moved = isMoved
  isMoved = false
  return moved
}

/** The current route. Links of the console are followed without loading the document again. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(window.location))
  useEffect(() => {
    const moved = () => setRoute(readRoute(window.location))
    window.addEventListener('popstate', moved)
    document.addEventListener('click', follow)
    return () => {
      window.removeEventListener('popstate', moved)
      document.removeEventListener('click', follow)
    }
  }, [])
  return route
}

function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link === null || link.target !== '' || link.hasAttribute('download')) return
  const url = new URL(link.href)
  if (url.origin !== window.location.origin || !url.pathname.startsWith(BASE) || link.dataset.load !== undefined) return
  event.preventDefault()
  goTo(url.pathname + url.search)
}
