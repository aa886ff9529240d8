import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { TestClock } from '@plat/core'
import { page, setUpWeb } from './testing/fixture.ts'

const HTML = '<title>The page</title><h1>Welcome</h1><p>Read <a href="/more">more</a>.</p><script>steal()</script>'

test('a page is returned as text, after a description of the page', async (t) => {
  // Shows D3.web.enabled, D3.web.userAgent and D3.web.defaultAllow.
  const headers: IncomingHttpHeaders[] = []
  const fixture = await setUpWeb(t, {
    config: { userAgent: 'reader/2 (test)' },
    answer(request, response) {
      headers.push(request.headers)
      page(response, 'text/html; charset=utf-8', HTML)
    },
  })
  const url = `${fixture.site('pages.example')}/a?b=c`
  assert.deepEqual(await fixture.fetch(`${url}#part`), [
    JSON.stringify({ url: `${url}#part`, contentType: 'text/html', title: 'The page' }),
    `# Welcome\n\nRead [more](${fixture.site('pages.example')}/more).`,
  ])
  assert.deepEqual((await fixture.fetch(url, { raw: true }))[1], HTML)
  assert.deepEqual(fixture.requests, ['pages.example/a?b=c', 'pages.example/a?b=c'])
  const [{ host: _, ...sent } = assert.fail()] = headers
  assert.deepEqual(sent, {
    'user-agent': 'reader/2 (test)',
    accept:
      'text/html, text/plain, text/markdown, text/csv, text/xml, application/xhtml+xml, application/xml, application/json',
    'accept-encoding': 'gzip, br, deflate',
  })
  assert.deepEqual(fixture.counted, ['web_fetch ok', 'web_fetch ok'])
})

test('a long text is returned in parts without gaps', async (t) => {
  const text = `${'0123456789'.repeat(20)}${'😀'.repeat(50)}`
  const fixture = await setUpWeb(t, { answer: (_, response) => page(response, 'text/plain', text) })
  const parts: string[] = []
  for (let startIndex = 0; ; ) {
    const [facts = '', part = ''] = await fixture.fetch(fixture.site('a.example'), { startIndex, maxLength: 33 })
    parts.push(part)
    const { nextIndex } = JSON.parse(facts)
    if (nextIndex === undefined) break
    startIndex = nextIndex
  }
  assert.equal(parts.join(''), text)
  assert.deepEqual((await fixture.fetch(fixture.site('a.example'), { startIndex: 9_999 }))[1], '')
})

test('text is decoded by the header, the byte order mark or the document', async (t) => {
  const pages: Record<string, readonly [string, Uint8Array]> = {
    '/head': ['text/plain; charset="windows-1251"', Uint8Array.of(0xcf, 0xf0, 0xe8)],
    '/meta': ['text/html', Buffer.concat([Buffer.from('<meta charset=shift_jis><p>'), Uint8Array.of(0x93, 0xfa)])],
    '/xml': ['text/xml', Buffer.from('<?xml version="1.0" encoding="iso-8859-1"?><a>\xe9</a>', 'latin1')],
    '/mark': ['text/plain; charset=utf-8', Buffer.from('\ufeffgr\u00fcn', 'utf16le')],
    '/none': ['text/plain', Buffer.from('gr\u00fcn')],
    '/old': ['text/plain', Uint8Array.of(0x67, 0xfc, 0x80)],
    '/unknown': ['text/plain; charset=no-such', Buffer.from('gr\u00fcn')],
    '/lies': ['text/html', Buffer.from('<meta charset="utf-16"><p>gr\u00fcn')],
  }
  const fixture = await setUpWeb(t, {
    answer(request, response) {
      const [type, body] = pages[request.url ?? ''] ?? assert.fail()
      page(response, type, body)
    },
  })
  const read = async (path: string) => (await fixture.fetch(fixture.site('a.example') + path))[1]
  assert.equal(await read('/head'), 'При')
  assert.equal(await read('/meta'), '日')
  assert.match((await read('/xml')) ?? '', /<a>é<\/a>/)
  assert.equal(await read('/mark'), 'grün')
  assert.equal(await read('/none'), 'grün')
  assert.equal(await read('/old'), 'gü€')
  assert.equal(await read('/unknown'), 'grün')
  assert.equal(await read('/lies'), 'grün')
})

test('only configured content types are read, and no byte of others', async (t) => {
  // Shows D3.web.contentTypes.
  const types: Record<string, string | undefined> = { '/png': 'image/png', '/html': 'text/html', '/own': 'text/x-own' }
  const fixture = await setUpWeb(t, {
    config: { contentTypes: ['text/x-*'] },
    answer(request, response) {
      const type = types[request.url ?? '']
      response.writeHead(200, type === undefined ? {} : { 'content-type': type })
      if (request.url === '/own') response.end('own')
      // An endless response: a reader would wait forever.
      else response.write('x')
    },
  })
  const at = fixture.site('a.example')
  assert.equal((await fixture.fetch(`${at}/own`))[1], 'own')
  assert.match(String(await fixture.fetch(`${at}/png`)), /^error: .*its type image\/png is not among web\.contentTypes/)
  assert.match(String(await fixture.fetch(`${at}/html`)), /^error: .*its type text\/html/)
  assert.match(String(await fixture.fetch(`${at}/none`)), /^error: .*it has no content type/)
})

test('the size of a page is limited, both compressed and decompressed', async (t) => {
  // Shows D3.web.maxBytes.
  const maxBytes = 100_000
  const bodies: Record<string, readonly [string, Uint8Array]> = {
    '/full': ['identity', Buffer.alloc(maxBytes, 'a')],
    '/more': ['identity', Buffer.alloc(maxBytes + 1, 'a')],
    '/gzip': ['gzip', gzipSync(Buffer.alloc(maxBytes, 'a'))],
    '/brotli': ['br', brotliCompressSync(Buffer.alloc(maxBytes, 'a'))],
    '/bomb': ['gzip', gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    '/over': ['br', brotliCompressSync(Buffer.alloc(maxBytes + 1, 'a'))],
    '/torn': ['gzip', gzipSync(Buffer.alloc(1000, 'a')).subarray(0, 20)],
    '/odd': ['compress', Buffer.from('x')],
  }
  const fixture = await setUpWeb(t, {
    config: { maxBytes },
    answer(request, response) {
      const [encoding, body] = bodies[request.url ?? ''] ?? ['identity', Buffer.from('')]
      if (request.url !== '/endless') return page(response, 'text/plain', body, { 'content-encoding': encoding })
      response.writeHead(200, { 'content-type': 'text/plain' })
      // Four times the limit, and no end.
      for (let sent = 0; sent < maxBytes * 4; sent += 20_000) response.write(Buffer.alloc(20_000, 'a'))
    },
  })
  const read = async (path: string) => {
    const result = await fixture.fetch(fixture.site('a.example') + path, { maxLength: 500_000 })
    return typeof result === 'string' ? result : result[1]?.length
  }
  for (const path of ['/full', '/gzip', '/brotli']) assert.equal(await read(path), maxBytes, path)
  for (const path of ['/more', '/bomb', '/over', '/endless'])
    assert.equal(await read(path), 'error: the page could not be read: it is larger than 100000 bytes', path)
  assert.match(String(await read('/torn')), /content coding is broken/)
  assert.match(String(await read('/odd')), /content coding is not supported/)
})

test('the timeout of a page includes redirects and slow bodies', async (t) => {
  // Shows D3.web.timeoutSeconds.
  const clock = new TestClock()
  const arrived = Promise.withResolvers<void>()
  const fixture = await setUpWeb(t, {
    clock,
    config: { timeoutSeconds: 7 },
    answer(request, response) {
      if (request.url === '/') return void response.writeHead(302, { location: '/slow' }).end()
      response.writeHead(200, { 'content-type': 'text/plain' }).write('a')
      arrived.resolve()
    },
  })
  const result = fixture.fetch(fixture.site('a.example'))
  await arrived.promise
  await clock.advance(7_000)
  assert.equal(await result, 'error: the page could not be read: it timed out')
})

test('an aborted call aborts its request', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  const fixture = await setUpWeb(t, {
    answer(_, response) {
      response.on('close', gone.resolve)
      arrived.resolve()
    },
  })
  const stop = new AbortController()
  const result = fixture.call('web_fetch', { url: fixture.site('a.example') }, {}, stop.signal)
  await arrived.promise
  stop.abort()
  await gone.promise
  assert.match(String(await result), /^error: .*stopped/)
})

test('failures are described for a model', async (t) => {
  const statuses: Record<string, number> = { '/gone': 404, '/broken': 500, '/nothing': 304 }
  const fixture = await setUpWeb(t, {
    lookup: async (name) => {
      if (name === 'nobody.example') throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
      return [{ address: name === 'away.example' ? '127.0.0.9' : '127.0.0.1', family: 4 }]
    },
    answer(request, response) {
      if (request.url === '/cut') request.socket.destroy()
      else response.writeHead(statuses[request.url ?? ''] ?? 200).end('words of a stranger')
    },
  })
  const at = fixture.site('a.example')
  const result = async (url: string) =>
    String(await fixture.fetch(url)).replace('error: the page could not be read: ', '')
  assert.equal(await result(`${at}/gone`), 'status 404')
  assert.equal(await result(`${at}/broken`), 'status 500')
  assert.equal(await result(`${at}/nothing`), 'status 304')
  assert.equal(await result(`${at}/cut`), 'its host broke the connection')
  assert.equal(await result(fixture.site('nobody.example')), 'its host cannot be found')
  assert.equal(await result(fixture.site('away.example')), 'its host cannot be reached')
  assert.match(await result('pages and no URL'), /^error: arguments\/url: must be a URL/)
  assert.match(await result(at.replace('http:', 'https:')), /broke the connection|certificate/)
  assert.deepEqual(new Set(fixture.counted), new Set(['web_fetch error']))
})
