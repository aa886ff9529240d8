import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { page, setUpWeb } from './testing/fixture.ts'

const FORBIDDEN = 'error: the page could not be read: the robots.txt of its host forbids it'
const UNREAD = 'error: the page could not be read: the robots.txt of its host cannot be read, which forbids everything'

/** Sites with these answers to `/robots.txt`; every other page says `read`. */
async function sites(t: Parameters<typeof setUpWeb>[0], robots: Record<string, () => string | number>, own = {}) {
  const clock = new TestClock()
  const fixture = await setUpWeb(t, {
    clock,
    config: { respectRobots: true, ...own },
    answer(request, response) {
      const host = request.headers.host?.split(':', 1)[0] ?? ''
      if (request.url !== '/robots.txt') return page(response, 'text/plain', 'read')
      const said = robots[host]?.() ?? 404
      if (typeof said === 'number') response.writeHead(said).end()
      else if (said.startsWith('http')) response.writeHead(301, { location: said }).end()
      else page(response, 'text/plain', said)
    },
  })
  const read = async (host: string, path = '/') => {
    const told = await fixture.fetch(fixture.site(host) + path)
    return typeof told === 'string' ? told : told[1]
  }
  return { ground: fixture, clock, read }
}

test('what a site asks of robots is heeded, asked once an hour, and only where it is configured', async (t) => {
  // Shows D3.web.respectRobots.
  let said = 'User-agent: plat-web\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n'
  const { ground: fixture, clock, read } = await sites(t, { 'a.example': () => said })
  assert.equal(await read('a.example', '/private/x'), FORBIDDEN)
  assert.equal(await read('a.example', '/public'), 'read')
  assert.deepEqual(fixture.asked, ['a.example/robots.txt', 'a.example/public'])
  said = ''
  await clock.advance(3_599_000)
  assert.equal(await read('a.example', '/private'), FORBIDDEN)
  await clock.advance(1_001)
  assert.equal(await read('a.example', '/private'), 'read')
  const careless = await sites(t, { 'a.example': () => 'User-agent: *\nDisallow: /' }, { respectRobots: false })
  assert.equal(await careless.read('a.example'), 'read')
  assert.deepEqual(careless.ground.asked, ['a.example/'])
})

test('a site without rules forbids nothing; one whose rules cannot be had forbids everything, for a minute', async (t) => {
  let status = 503
  const { clock, read } = await sites(t, {
    'none.example': () => 404,
    'private.example': () => 403,
    'broken.example': () => status,
    'large.example': () => `#${'a'.repeat(512_000)}`,
    'away.example': () => 'http://169.254.169.254/robots.txt',
  })
  assert.equal(await read('none.example'), 'read')
  assert.equal(await read('private.example'), 'read')
  assert.equal(await read('large.example'), UNREAD)
  assert.equal(await read('away.example'), UNREAD)
  assert.equal(await read('broken.example'), UNREAD)
  status = 404
  await clock.advance(59_000)
  assert.equal(await read('broken.example'), UNREAD)
  await clock.advance(1_001)
  assert.equal(await read('broken.example'), 'read')
})

test('the site that a redirect leads to is asked as well', async (t) => {
  const fixture = await setUpWeb(t, {
    config: { respectRobots: true },
    answer(request, response) {
      if (request.url === '/robots.txt' && request.headers.host?.startsWith('b.')) {
        page(response, 'text/plain', 'User-agent: *\nDisallow: /')
      } else if (request.url === '/robots.txt') response.writeHead(404).end()
      else response.writeHead(302, { location: fixture.site('b.example') }).end()
    },
  })
  assert.equal(await fixture.fetch(fixture.site('a.example')), FORBIDDEN)
  assert.deepEqual(fixture.asked, ['a.example/robots.txt', 'a.example/', 'b.example/robots.txt'])
})
