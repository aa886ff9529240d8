import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The browser of Debian's package `chromium`. */
export const CHROMIUM = '/usr/bin/chromium'

/** Starts the browser without a window. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] })
}

/** Everything that a page reported as wrong: scripts that threw, and what the content security policy refused. */
export interface Watched {
  readonly problems: readonly string[]
  /** Addresses of other hosts that the page requested. */
  readonly foreign: readonly string[]
}

/** Collects problems of a page from now on. */
export function watchPage(page: Page, origin: string): Watched {
  const problems: string[] = []
  const foreign: string[] = []
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) problems.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) foreign.push(request.url())
  })
  return { problems, foreign }
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'))

/** Violations that axe-core finds in the page as it is: one line each. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(AXE, 'utf8'))
  const { violations }: AxeResults = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html} ${failureSummary}`),
  )
}
