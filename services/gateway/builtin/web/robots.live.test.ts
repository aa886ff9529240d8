import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { page, setUpWeb } from './testing/fixture.ts'

const FORBIDDEN = 'error: the page could not be read: the robots.txt of its host forbids it'
const UNREAD = 'error: the page could not be read: the robots.txt of its host cannot be read, which forbids everything'

/** Sites with these responses to `/robots.txt`; all other pages have the text `read`. */
async function sites(t: Parameters<typeof setUpWeb>[0], robots: Record<string, () => string | number>, own = {}) {
  const clock = new TestClock()
  const fixture = await setUpWeb(t, {
    clock,
    config: { respectRobots: true, ...own },
    answer(request, response) {
      const host = request.headers.host?.split(':', 1)[0] ?? ''
      if (request.url !== '/robots.txt') return page(response, 'text/plain', 'read')
      const robotsText = robots[host]?.() ?? 404
      if (typeof robotsText === 'number') response.writeHead(robotsText).end()
      else if (robotsText.startsWith('http')) response.writeHead(301, { location: robotsText }).end()
      else page(response, 'text/plain', robotsText)
    },
  })
  const read = async (host: string, path = '/') => {
    const result = await fixture.fetch(fixture.site(host) + path)
    return typeof result === 'string' ? result : result[1]
  }
  return { ground: fixture, clock, read }
}

test('robots.txt is honored, fetched once per hour, and only if configured', async (t) => {
  // Shows D3.web.respectRobots.
  let robotsText = 'User-agent: plat-web\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n'
  const { ground: fixture, clock, read } = await sites(t, { 'a.example': () => robotsText })
  assert.equal(await read('a.example', '/private/x'), FORBIDDEN)
  assert.equal(await read('a.example', '/public'), 'read')
  assert.deepEqual(fixture.requests, ['a.example/robots.txt', 'a.example/public'])
  robotsText = ''
  await clock.advance(3_599_000)
  assert.equal(await read('a.example', '/private'), FORBIDDEN)
  await clock.advance(1_001)
  assert.equal(await read('a.example', '/private'), 'read')
  const careless = await sites(t, { 'a.example': () => 'User-agent: *\nDisallow: /' }, { respectRobots: false })
  assert.equal(await careless.read('a.example'), 'read')
  assert.deepEqual(careless.ground.requests, ['a.example/'])
})

test('a site without rules forbids nothing; one whose rules are not available forbids everything, for a minute', async (t) => {
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

test('the rules of a redirect target are checked, too', async (t) => {
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
  assert.deepEqual(fixture.requests, ['a.example/robots.txt', 'a.example/', 'b.example/robots.txt'])
})
