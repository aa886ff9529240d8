import { readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import type { Verdict } from '@plat/gateway/policy-trial'
import { readYaml } from '@plat/kubernetes'
import { checkStructure, linesOf } from '@plat/resources'
import { mapOf } from '@plat/resources/rendered'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { CommandError, type Format, type Output, plain } from '../shared/output.ts'
import { printData } from '../shared/print.ts'
import { type FolderTrial, readCall, warnOfEngine, withTrial } from './trial.ts'

const { Optional } = Type
const closed = { additionalProperties: false }
const text = () => Type.String({ minLength: 1 })

const fileSchema = Type.Object(
  {
    tests: Type.Array(
      Type.Object(
        {
          name: text(),
          agent: text(),
          call: text(),
          args: Optional(Type.Unsafe<object>({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true })),
          user: Optional(text()),
          groups: Optional(Type.Array(text())),
          taints: Optional(Type.Array(text())),
          time: Optional(text()),
          used: Optional(mapOf(Type.Integer({ minimum: 0 }))),
          spent: Optional(mapOf(Type.Union([Type.String(), Type.Integer({ minimum: 0 })]))),
          tokens: Optional(
            Type.Object({ input: Type.Integer({ minimum: 0 }), output: Type.Integer({ minimum: 0 }) }, closed),
          ),
          expect: Type.Enum(['allow', 'deny', 'require_approval'], { type: 'string' }),
          rule: Optional(text()),
          code: Optional(text()),
        },
        closed,
      ),
      { minItems: 1, maxItems: 10_000 },
    ),
  },
  closed,
)

type PolicyTest = Static<typeof fileSchema>['tests'][number]

interface Result {
  readonly name: string
  readonly passed: boolean
  /** `tests.yaml:12` */
  readonly place: string
  /** Null: passed. */
  readonly problem: string | null
}

const FAILED = 3

/**
 * `plat policy test -file`: runs tests of policies.
 * @returns 0 all passed, 3 some failed
 * @throws CommandError if the file is not a valid file of tests
 */
export async function policyTestFile(
  { dir, file, output: format }: { readonly dir: string; readonly file: string; readonly output: Format },
  output: Output,
): Promise<number> {
  const { tests, lines } = await readTests(file)
  const results = await withTrial(dir, async (folder) => {
    warnOfEngine(folder, output)
    const all: Result[] = []
    for (const [index, one] of tests.entries()) {
      const problem = await problemOf(one, folder)
      all.push({ name: one.name, passed: problem === null, place: `${file}:${lines[index] ?? 1}`, problem })
    }
    return all
  })
  const failed = results.filter(({ passed }) => !passed)
  if (format === 'table') {
    for (const { name, place, problem } of failed) output.out(plain(`${place}: ${name}: ${problem}`))
    output.out(`${results.length} tests: ${results.length - failed.length} passed, ${failed.length} failed`)
  } else printData(output, format, results)
  return failed.length === 0 ? 0 : FAILED
}

async function readTests(file: string): Promise<{ tests: readonly PolicyTest[]; lines: readonly number[] }> {
  const content = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}`)
  })
  const { value, problems } = readYaml(content)
  const faults = problems.map(({ line, message }) => `${file}:${line}: ${message}`)
  if (faults.length > 0) throw new CommandError(faults.join('\n'))
  const wrong = checkStructure(fileSchema, value)
  if (wrong.length > 0 || !Check(fileSchema, value)) {
    const at = linesOf(
      content,
      wrong.map(({ path }) => path),
    )
    const texts = wrong.map(({ path, message }, index) => `${file}:${at[index] ?? 1}: ${path}: ${message}`)
    throw new CommandError(texts.join('\n'))
  }
  const paths = value.tests.map((_test, index) => `tests[${index}]`)
  return { tests: value.tests, lines: linesOf(content, paths) }
}

/** Why a test fails; null: it passes. */
async function problemOf(test: PolicyTest, folder: FolderTrial): Promise<string | null> {
  const { args, expect, rule, code, name: _, ...written } = test
  const wanted = { ...written, args: args === undefined ? null : JSON.stringify(args) }
  let verdict: Verdict | string
  try {
    verdict = folder.trial.judge(await readCall(folder.home.dir, wanted))
  } catch (error) {
    if (error instanceof CommandError) return error.message
    throw error
  }
  if (typeof verdict === 'string') return verdict
  const found = verdict.action ?? verdict.possible.join(' or ')
  const isRule = rule === undefined || verdict.rule === rule
  const isCode = code === undefined || verdict.code === code
  if (found === expect && isRule && isCode) return null
  const place = await folder.locate(verdict)
  const by = verdict.rule === null ? '' : ` by rule ${verdict.rule}${place === null ? '' : ` (${place})`}`
  const wish = `${expect}${rule === undefined ? '' : ` by rule ${rule}`}${code === undefined ? '' : ` with ${code}`}`
  const got = `${found}${by}${verdict.code === null || code === undefined ? '' : ` with ${verdict.code}`}`
  return `expected ${wish}, got ${got}: ${verdict.reason}`
}
