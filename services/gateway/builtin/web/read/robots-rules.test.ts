import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseRobots } from './robots-rules.ts'

const allows = (text: string, path: string, product = 'plat-web') => parseRobots(text, product).allows(path)

test('the group of the name applies, and the one for all robots only without it', () => {
  const text = 'User-Agent: Other\nUser-agent: PLAT-WEB/1.0\nDisallow: /a\n\nuser-agent: *\ndisallow: /b # not here\n'
  assert.deepEqual([allows(text, '/a'), allows(text, '/b')], [false, true])
  assert.deepEqual([allows(text, '/a', 'other'), allows(text, '/b', 'other')], [false, true])
  assert.deepEqual([allows(text, '/a', 'third'), allows(text, '/b', 'third')], [true, false])
  const twice = 'User-agent: plat-web\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: plat-web\nDisallow: /b'
  assert.deepEqual([allows(twice, '/a'), allows(twice, '/b'), allows(twice, '/c')], [false, false, true])
  assert.ok(allows('User-agent: plat-web\nDisallow:\nUser-agent: *\nDisallow: /', '/a'))
})

test('the longest rule decides, and of two with equal length the allowing one', () => {
  const rules = (...lines: string[]) => `User-agent: *\r\n${lines.join('\r\n')}`
  assert.ok(allows(rules('Disallow: /a', 'Allow: /a/b'), '/a/b/c'))
  assert.ok(!allows(rules('Allow: /a', 'Disallow: /a/b'), '/a/b/c'))
  assert.ok(allows(rules('Disallow: /a', 'Allow: /a'), '/a'))
  assert.ok(!allows(rules('Disallow: /*.php$'), '/x/y.php'))
  assert.ok(allows(rules('Disallow: /*.php$'), '/x/y.php?a'))
  assert.ok(!allows(rules('Disallow: *secret'), '/a/secret/b'))
  assert.ok(!allows(rules('Disallow: /?q='), '/?q=1'))
  assert.ok(allows(rules('Disallow: /'), '/robots.txt'))
})

test('all percent-encodings of a path are equal', () => {
  assert.ok(!allows('User-agent: *\nDisallow: /caf\u00e9', '/caf%c3%a9'))
  assert.ok(!allows('User-agent: *\nDisallow: /%7ejoe', '/~joe'))
  assert.ok(!allows('User-agent: *\nDisallow: /a%2Fb', '/a%2fb'))
  assert.ok(allows('User-agent: *\nDisallow: /a%2Fb', '/a/b'))
})

test('a site with too many rules forbids everything', () => {
  const many = `User-agent: *\n${'Allow: /a\n'.repeat(5_001)}`
  assert.ok(!allows(many, '/a'))
})

test('any text can be parsed, and a rule for a prefix applies to all paths with it', () => {
  const path = fc.webPath().map((text) => (text.startsWith('/') ? text : `/${text}`))
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), path, (text, candidate) => typeof allows(text, candidate) === 'boolean'),
  )
  fc.assert(
    fc.property(path, path, (forbidden, rest) => {
      fc.pre(!/[*$]/.test(forbidden) && forbidden + rest !== '/robots.txt')
      assert.ok(!allows(`User-agent: *\nDisallow: ${forbidden}`, forbidden + rest))
    }),
  )
})

test('any line breaks, spaces and case are accepted, and comments are ignored', () => {
  const allows = (text: string) => parseRobots(text, 'plat').allows('/a')
  for (const end of ['\n', '\r', '\r\n', '\n\n\r\n'])
    assert.equal(allows([' User-Agent : *', 'x:y', 'no colon', ':/', ' DISALLOW\t: /a '].join(end)), false, end)
  assert.equal(allows('user-agent: *\n#disallow: /a\ndis#allow: /a\ndisallow#: /a\ndisallow: #/a'), true)
  assert.equal(allows('user-agent: *\u2028disallow: /a'), true)
  assert.equal(allows('user-agent: *\ndisallow: /a#b'), false)
})

test('many rules for other robots do not hide those for this one', () => {
  const others = `user-agent: *\n${'disallow: /b\n'.repeat(6000)}`
  assert.equal(parseRobots(others, 'plat').allows('/a'), false)
  const own = 'user-agent: plat\ndisallow: /c\n'
  for (const text of [others + own, own + others]) {
    assert.equal(parseRobots(text, 'plat').allows('/b'), true)
    assert.equal(parseRobots(text, 'plat').allows('/c'), false)
  }
  assert.equal(parseRobots(`user-agent: plat\n${'allow: /b\n'.repeat(6000)}`, 'plat').allows('/b'), false)
})
