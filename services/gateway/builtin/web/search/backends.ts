import { isObject, withoutTrailing } from '@plat/core'
import type { FetchOptions } from '@plat/http'
import type { Static } from 'typebox'
import type { webBlock } from '../config.ts'

export type SearchConfig = Static<typeof webBlock.schema>['search']

export interface SearchResult {
  readonly url: string
  readonly title: string
  readonly snippet: string
}

/** Request format and response parser of a backend. */
export interface Backend {
  question(query: string, maxResults: number): { readonly url: URL } & Pick<FetchOptions, 'method' | 'body'>
  /** Returns null if the response is not of this backend. */
  results(answer: unknown): readonly SearchResult[] | null
}

/** Returns the backend of `web.search`, or null if there is none. */
export function backendOf(config: SearchConfig): Backend | null {
  switch (config.backend) {
    case 'searxng':
      return searxng(config)
    case 'opensearch':
      return opensearch(config)
    default:
      return null
  }
}

/** SearXNG's `/search` with `format=json`, which its settings must allow. It has no parameter for the number of results. */
function searxng({ url }: SearchConfig): Backend {
  return {
    question(query) {
      const target = below(url, 'search')
      target.searchParams.set('q', query)
      target.searchParams.set('format', 'json')
      return { url: target, method: 'GET' }
    },
    results: (answer) => listed(memberAt(answer, ['results']), { url: 'url', title: 'title', snippet: 'content' }),
  }
}

/** OpenSearch's `_search` of one index: all words of the query in any of `fields`. */
function opensearch(config: SearchConfig): Backend {
  const { url, index, fields, urlField, titleField, snippetField } = config
  const target = below(url, `${encodeURIComponent(index)}/_search`)
  return {
    question: (query, size) => ({
      url: target,
      method: 'POST',
      body: JSON.stringify({
        size,
        query: { multi_match: { query, fields } },
        _source: [urlField, titleField, snippetField],
      }),
    }),
    results(answer) {
      const hits = memberAt(answer, ['hits', 'hits'])
      const sources = Array.isArray(hits) ? hits.map((hit: unknown) => memberAt(hit, ['_source'])) : null
      return listed(sources, { url: urlField, title: titleField, snippet: snippetField })
    },
  }
}

function below(url: string, path: string): URL {
  const base = new URL(url)
  base.pathname = `${withoutTrailing(base.pathname, '/')}/${path}`
  return base
}

/** Fields by name; dots in a name descend into objects. */
function listed(items: unknown, names: Readonly<Record<keyof SearchResult, string>>): readonly SearchResult[] | null {
  if (!Array.isArray(items)) return null
  const found: SearchResult[] = []
  for (const item of items) {
    if (!isObject(item)) continue
    const field = (name: string) => {
      const value = memberAt(item, [name]) ?? memberAt(item, name.split('.'))
      return typeof value === 'string' ? value : ''
    }
    found.push({ url: field(names.url), title: field(names.title), snippet: field(names.snippet) })
  }
  return found
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)
}
