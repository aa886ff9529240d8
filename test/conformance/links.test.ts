import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PAGES = globSync(['*.md', 'docs/**/*.md', 'sdk/**/*.md', 'services/**/*.md'], {
  cwd: ROOT,
  exclude: (name) => name.includes('node_modules'),
}).sort()

const readPage = (page: string) => readFileSync(path.join(ROOT, page), 'utf8')

/** Anchors of the headings of a page, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)]
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-')
  return new Set(headings.map(([, heading = '']) => slug(heading)))
}

/** Relative links outside code, with their fragments. */
function linksOf(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`(?!\])/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
}

/** Null when a link of a page leads to a file and, with a fragment, to a heading of that page. */
function problemOf(page: string, link: string): string | null {
  const [target = '', fragment = ''] = link.split('#')
  const file = target === '' ? page : path.join(path.dirname(page), target)
  if (!existsSync(path.join(ROOT, file))) return `${page}: no file ${link}`
  if (fragment === '' || !file.endsWith('.md') || anchorsOf(readPage(file)).has(fragment)) return null
  return `${page}: no heading ${link}`
}

test('every relative link of a page leads to a file, and to a heading where it names one', () => {
  assert.ok(PAGES.length > 100)
  const problems = PAGES.flatMap((page) => linksOf(readPage(page)).map((link) => problemOf(page, link)))
  assert.deepEqual(
    problems.filter((problem) => problem !== null),
    [],
  )
})

test('the index of the documentation links every page of its folder', () => {
  const linked = new Set(linksOf(readPage('docs/README.md')))
  const pages = PAGES.filter((page) => path.dirname(page) === 'docs').map((page) => path.basename(page))
  assert.deepEqual(
    pages.filter((page) => page !== 'README.md' && !linked.has(page)),
    [],
  )
})

test('the glossary is sorted and defines each term once', () => {
  const terms = [...readPage('docs/glossary.md').matchAll(/^\| (?!term)([^|]+?) \|/gm)].map(([, term = '']) =>
    term.replaceAll('`', '').toLowerCase(),
  )
  assert.ok(terms.length > 60)
  assert.deepEqual(terms, [...new Set(terms)].sort())
})
