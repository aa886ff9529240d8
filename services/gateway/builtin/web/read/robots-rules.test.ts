import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRobots } from './robots-rules.ts'

const allows = (text: string, path: string, product = 'plat-web') => parseRobots(text, product).allows(path)

test('the group of the name applies, and the one for all robots only without it', async () => {
  const text = 'User-Agent: Other\nUser-agent: PLAT-WEB/1.0\nDisallow: /a\n\nuser-agent: *\ndisallow: /b # not here\n'
  assert.deepEqual([await allows(text, '/a'), await allows(text, '/b')], [false, true])
  assert.deepEqual([await allows(text, '/a', 'other'), await allows(text, '/b', 'other')], [false, true])
  assert.deepEqual([await allows(text, '/a', 'third'), await allows(text, '/b', 'third')], [true, false])
  const twice = 'User-agent: plat-web\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: plat-web\nDisallow: /b'
  assert.deepEqual(
    [await allows(twice, '/a'), await allows(twice, '/b'), await allows(twice, '/c')],
    [false, false, true],
  )
  assert.ok(await allows('User-agent: plat-web\nDisallow:\nUser-agent: *\nDisallow: /', '/a'))
})

test('the longest rule decides, and of two with equal length the allowing one', async () => {
  const rules = (...lines: string[]) => `User-agent: *\r\n${lines.join('\r\n')}`
  assert.ok(await allows(rules('Disallow: /a', 'Allow: /a/b'), '/a/b/c'))
  assert.ok(!(await allows(rules('Allow: /a', 'Disallow: /a/b'), '/a/b/c')))
  assert.ok(await allows(rules('Disallow: /a', 'Allow: /a'), '/a'))
  assert.ok(!(await allows(rules('Disallow: /*.php$'), '/x/y.php')))
  assert.ok(await allows(rules('Disallow: /*.php$'), '/x/y.php?a'))
  assert.ok(!(await allows(rules('Disallow: *secret'), '/a/secret/b')))
  assert.ok(!(await allows(rules('Disallow: /?q='), '/?q=1')))
  assert.ok(await allows(rules('Disallow: /'), '/robots.txt'))
  // Several stars match what one does, and count.
  assert.ok(!(await allows(rules('Allow: /*b', 'Disallow: /**b'), '/ab')))
  assert.ok(!(await allows(rules('Disallow: /***$'), '/')))
})

test('all percent-encodings of a path are equal', async () => {
  assert.ok(!(await allows('User-agent: *\nDisallow: /caf\u00e9', '/caf%c3%a9')))
  assert.ok(!(await allows('User-agent: *\nDisallow: /%7ejoe', '/~joe')))
  assert.ok(!(await allows('User-agent: *\nDisallow: /a%2Fb', '/a%2fb')))
  assert.ok(await allows('User-agent: *\nDisallow: /a%2Fb', '/a/b'))
})

test('a site with too many rules forbids everything', async () => {
  const many = `User-agent: *\n${'Allow: /a\n'.repeat(5_001)}`
  assert.ok(!(await allows(many, '/a')))
})

test('any text can be parsed, and a rule for a prefix applies to all paths with it', async () => {
  const path = fc.webPath().map((text) => (text.startsWith('/') ? text : `/${text}`))
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary' }),
      path,
      async (text, candidate) => typeof (await allows(text, candidate)) === 'boolean',
    ),
  )
  await fc.assert(
    fc.asyncProperty(path, path, async (forbidden, rest) => {
      fc.pre(!/[*$]/.test(forbidden) && forbidden + rest !== '/robots.txt')
      assert.ok(!(await allows(`User-agent: *\nDisallow: ${forbidden}`, forbidden + rest)))
    }),
  )
})

test('any line breaks, spaces and case are accepted, and comments are ignored', async () => {
  const allows = (text: string) => parseRobots(text, 'plat').allows('/a')
  for (const end of ['\n', '\r', '\r\n', '\n\n\r\n'])
    assert.equal(await allows([' User-Agent : *', 'x:y', 'no colon', ':/', ' DISALLOW\t: /a '].join(end)), false, end)
  assert.equal(await allows('user-agent: *\n#disallow: /a\ndis#allow: /a\ndisallow#: /a\ndisallow: #/a'), true)
  assert.equal(await allows('user-agent: *\u2028disallow: /a'), true)
  assert.equal(await allows('user-agent: *\ndisallow: /a#b'), false)
})

test('many rules for other robots do not hide those for this one', async () => {
  const others = `user-agent: *\n${'disallow: /b\n'.repeat(6000)}`
  assert.equal(await parseRobots(others, 'plat').allows('/a'), false)
  const own = 'user-agent: plat\ndisallow: /c\n'
  for (const text of [others + own, own + others]) {
    assert.equal(await parseRobots(text, 'plat').allows('/b'), true)
    assert.equal(await parseRobots(text, 'plat').allows('/c'), false)
  }
  assert.equal(await parseRobots(`user-agent: plat\n${'allow: /b\n'.repeat(6000)}`, 'plat').allows('/b'), false)
})
