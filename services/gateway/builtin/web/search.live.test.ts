import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock, TestClock } from '@plat/core'
import { createAuthority } from '@plat/testkit/authority'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { keyOf } from '../../testing/certified.ts'
import { problemsWith } from '../../testing/configured.ts'
import { page, setUpWeb } from './testing/fixture.ts'

interface Question {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A backend with TLS of a private authority and scripted responses. */
async function backend(t: TestContext, answer: (question: Question) => object | string | number) {
  const authority = await createAuthority({ name: 'search', now: systemClock.now() })
  const leaf = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const queries: Question[] = []
  const server = createServer({ cert: leaf.pem, key: keyOf(leaf) }, async (request, response) => {
    const { method, url: path, headers } = request
    const question = { method, path, headers, body: (await request.toArray()).join('') }
    queries.push(question)
    const scripted = answer(question)
    if (typeof scripted === 'number') response.writeHead(scripted).end('words of the backend')
    else response.end(typeof scripted === 'string' ? scripted : JSON.stringify(scripted))
  })
  t.after(() => closed(server))
  const port = await listening(server)
  const dir = tempFolder()
  const caFile = join(dir, 'ca.pem')
  await writeFile(caFile, authority.pem)
  return { url: `https://localhost:${port}`, caFile, queries, dir }
}

const results = (urls: readonly string[]) =>
  urls.map((url, at) => ({ url, title: `t${at}`, content: `c${at}`, score: 1 }))

const answerIn = (result: readonly string[] | string) => JSON.parse(result[0] ?? '')

test('SearXNG is queried for JSON, and results that the caller may not read are omitted', async (t) => {
  // Shows D3.web.search.backend.searxng.
  // Shows D3.web.search.backend, D3.web.search.url, D3.web.search.caFile and D3.web.search.maxResults.
  const urls = [
    'https://a.example/1',
    'https://secret.example/2',
    'ftp://a.example/3',
    'no URL',
    'https://b.a.example/4?q=1',
    'https://a.example/5',
  ]
  const { url, caFile, queries } = await backend(t, () => ({ results: results(urls), number_of_results: 6 }))
  const search = { backend: 'searxng', url: `${url}/under/`, caFile, maxResults: 2 }
  const fixture = await setUpWeb(t, {
    config: { allowedPorts: [80, 443], deniedDomains: ['secret.example'], search, allowedCIDRs: [] },
  })
  assert.deepEqual(fixture.tools(), ['web_fetch', 'web_search'])
  assert.deepEqual(answerIn(await fixture.call('web_search', { query: 'a & b' })), {
    results: [
      { title: 't0', url: urls[0], snippet: 'c0' },
      { title: 't4', url: urls[4], snippet: 'c4' },
    ],
    leftOut: 3,
  })
  assert.equal(answerIn(await fixture.call('web_search', { query: 'x', maxResults: 1 })).results.length, 1)
  assert.match(String(await fixture.call('web_search', { query: 'x', maxResults: 3 })), /^error: arguments\/maxResults/)
  assert.deepEqual(
    queries.map(({ method, path, body }) => [method, path, body]),
    [
      ['GET', '/under/search?q=a+%26+b&format=json', ''],
      ['GET', '/under/search?q=x&format=json', ''],
    ],
  )
  assert.deepEqual(fixture.counted, ['web_search ok', 'web_search ok', 'web_search error'])
})

test('without configuration a page has 2 MiB, 15 seconds and 5 redirects, and a search has 10 results', async (t) => {
  // Shows D3.limit.web.
  const MIB = 1024 * 1024
  const clock = new TestClock()
  const arrived = Promise.withResolvers<void>()
  let urls: readonly string[] = []
  const { url, caFile } = await backend(t, () => ({ results: results(urls), number_of_results: 11 }))
  const search = { backend: 'searxng', url, caFile }
  const fixture = await setUpWeb(t, {
    clock,
    config: { search },
    answer(request, response) {
      const [, kind, count] = request.url?.split('/') ?? []
      if (kind === 'bytes') return page(response, 'text/plain', Buffer.alloc(Number(count), 'a'))
      if (kind === 'slow') {
        response.writeHead(200, { 'content-type': 'text/plain' }).write('a')
        return arrived.resolve()
      }
      if (count === '0') return page(response, 'text/plain', 'here')
      response.writeHead(302, { location: `/redirects/${Number(count) - 1}` }).end()
    },
  })
  const at = fixture.site('a.example')
  assert.equal((await fixture.fetch(`${at}/bytes/${2 * MIB}`))[1]?.[0], 'a')
  assert.match(String(await fixture.fetch(`${at}/bytes/${2 * MIB + 1}`)), /it is larger than 2097152 bytes/)
  assert.equal((await fixture.fetch(`${at}/redirects/5`))[1], 'here')
  assert.match(String(await fixture.fetch(`${at}/redirects/6`)), /it redirects more than 5 times/)
  const slow = fixture.fetch(`${at}/slow`)
  let ended = false
  void slow.then(() => {
    ended = true
  })
  await arrived.promise
  await clock.advance(14_999)
  assert.equal(ended, false)
  await clock.advance(1)
  assert.match(String(await slow), /it timed out/)
  urls = Array.from({ length: 11 }, (_, index) => `${at}/${index}`)
  assert.equal(answerIn(await fixture.call('web_search', { query: 'x' })).results.length, 10)
  for (const [key, limit] of Object.entries({ maxBytes: 32 * MIB, search: { maxResults: 50 } })) {
    const over = typeof limit === 'number' ? limit + 1 : { maxResults: limit.maxResults + 1 }
    assert.deepEqual(problemsWith({ web: { [key]: limit } }), [])
    assert.equal(problemsWith({ web: { [key]: over } }).length, 1, key)
  }
})

test('OpenSearch is queried by index and fields, with a header reloaded for each search', async (t) => {
  // Shows D3.web.search.backend.opensearch.
  // Shows D3.web.search.index, D3.web.search.fields, D3.web.search.urlField, D3.web.search.titleField, D3.web.search.snippetField
  // and D3.web.search.authHeaderFile.
  const sources = [
    { link: { href: 'https://a.example/1' }, name: 'one', text: 'x'.repeat(3_000) },
    { 'link.href': 'https://a.example/2', name: 7 },
  ]
  let taken = 'Basic first'
  const { url, caFile, queries, dir } = await backend(t, ({ headers }) =>
    headers.authorization === taken ? { hits: { hits: sources.map((_source) => ({ _source })) } } : 401,
  )
  const authHeaderFile = join(dir, 'auth')
  const fixture = await setUpWeb(t, {
    config: {
      allowedPorts: [443],
      search: {
        backend: 'opensearch',
        url,
        caFile,
        index: 'pages/2026',
        fields: ['name^3', 'text'],
        urlField: 'link.href',
        titleField: 'name',
        snippetField: 'text',
        authHeaderFile,
      },
    },
  })
  const search = () => fixture.call('web_search', { query: 'what' })
  assert.match(String(await search()), /^upstream_credential: web\.search\.authHeaderFile cannot be read/)
  await writeFile(authHeaderFile, 'Basic two\nlines')
  assert.match(String(await search()), /^upstream_credential/)
  assert.equal(queries.length, 0)
  await writeFile(authHeaderFile, 'Basic first\n')
  assert.deepEqual(answerIn(await search()), {
    results: [
      { title: 'one', url: 'https://a.example/1', snippet: 'x'.repeat(2_048) },
      { title: '', url: 'https://a.example/2', snippet: '' },
    ],
    leftOut: 0,
  })
  const [{ method, path, body } = assert.fail()] = queries
  assert.deepEqual([method, path], ['POST', '/pages%2F2026/_search'])
  assert.deepEqual(JSON.parse(body), {
    size: 10,
    query: { multi_match: { query: 'what', fields: ['name^3', 'text'] } },
    _source: ['link.href', 'name', 'text'],
  })
  taken = 'Basic second'
  assert.match(String(await search()), /^upstream_credential: the search backend does not accept the gateway/)
  await writeFile(authHeaderFile, 'Basic second')
  assert.equal(answerIn(await search()).results.length, 2)
})

test('a failure of the backend is described without its text', async (t) => {
  let answer: object | string | number = 500
  const { url, caFile } = await backend(t, () => answer)
  const config = { search: { backend: 'searxng', url, caFile } }
  const fixture = await setUpWeb(t, { config })
  const failed = (status: number) => `error: the search failed: its backend responded ${status} without results`
  assert.equal(await fixture.call('web_search', { query: 'x' }), failed(500))
  for (const odd of ['words', '{"results":{}}', '{"results":[],"results":[]}', [], {}]) {
    answer = odd
    assert.equal(await fixture.call('web_search', { query: 'x' }), failed(200), JSON.stringify(odd))
  }
  answer = { results: [null, 'x', {}, { url: 1 }] }
  assert.deepEqual(answerIn(await fixture.call('web_search', { query: 'x' })), { results: [], leftOut: 2 })
  const stranger = await setUpWeb(t, { config: { search: { ...config.search, caFile: '' } } })
  assert.match(String(await stranger.call('web_search', { query: 'x' })), /certificate of its backend is not accepted/)
})

test('without a backend there is no search tool; without readable domains there is no tool', async (t) => {
  // Shows D3.web.namespaces, D3.web.defaultAllow and D3.web.search.backend.none.
  assert.deepEqual((await setUpWeb(t)).tools(), ['web_fetch'])
  const namespaces = { team: { allowedDomains: ['example.com'] }, other: { deniedDomains: ['example.com'] } }
  const fixture = await setUpWeb(t, { config: { defaultAllow: false, namespaces } })
  assert.deepEqual(fixture.tools({ namespace: 'team' }), ['web_fetch'])
  for (const namespace of ['other', 'default']) assert.deepEqual(fixture.tools({ namespace }), [], namespace)
  const own = await setUpWeb(t, { config: { defaultAllow: false }, agentDomains: { allowedDomains: ['example.com'] } })
  assert.deepEqual(own.tools(), ['web_fetch'])
})

test('a search has the timeout of a page', async (t) => {
  // Shows D3.web.timeoutSeconds.
  const clock = new TestClock()
  const queries = Promise.withResolvers<void>()
  const fixture = await setUpWeb(t, {
    clock,
    config: { timeoutSeconds: 7, search: { backend: 'searxng', url: 'http://search.example:1' } },
    lookup: () => {
      queries.resolve()
      return new Promise(() => {})
    },
  })
  const result = fixture.call('web_search', { query: 'x' })
  await queries.promise
  await clock.advance(7_000)
  assert.equal(await result, 'error: the search failed: its backend did not respond in time')
})
