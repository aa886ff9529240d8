import { type CelInput, isCelError, parse, plan } from '@bufbuild/cel'
import { closest } from '@plat/core'
import { argumentPaths, type MissingArguments, reportMissing } from './cel/arguments.ts'
import {
  addMarks,
  BudgetExceededError,
  CostBudget,
  type Expr,
  isFunction,
  meteredEnv,
  withinBudget,
} from './cel/meter.ts'

export { BudgetExceededError, CostBudget }

/** A rule across fields, in the form of `x-kubernetes-validations`: `self` is the object that carries it. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  /** Field reported in the problem, relative to the object: `.endpoint`. Default: the object. */
  readonly fieldPath?: string
  /** `FieldValueRequired` reads `Required value`. Default: `Invalid value`. */
  readonly reason?: 'FieldValueRequired' | 'FieldValueInvalid'
}

/** Variables by name. Values: string, boolean, null, bigint (int), number (double), Map, array, timestamp message. */
export type CelVariables = { readonly [name: string]: CelInput }

export interface Expression {
  /**
   * Returns the result of the expression; `error` when it has none (missing member, wrong type, not a boolean), `budget` when the evaluation
   * exceeded its cost budget, or the rest of the message's. `missing` is notified of an argument that the expression reads and the
   * call lacks, where that is the error.
   */
  test(variables: CelVariables, budget?: CostBudget, missing?: MissingArguments): boolean | 'error' | 'budget'
  /** Variables used in the expression. */
  readonly mentions: ReadonlySet<string>
}

/** Maximum length of an expression in characters. */
export const EXPRESSION_MAX_CHARS = 4096

/** Variables with data of callers, limited only by the size of a request. */
const CALLER_VARIABLES = ['args', 'inputResponses', 'meta'] as const

/** Names that CEL itself gives a meaning. */
const TYPE_NAMES = ['int', 'uint', 'double', 'bool', 'string', 'bytes', 'list', 'map', 'null_type', 'type', 'google']

/**
 * Compiles a CEL expression. Static errors are refused: syntax, unknown variables, unknown functions. Returns the expression, or one line that says
 * what is wrong.
 */
export function compileExpression(text: string, variables: readonly string[]): Expression | string {
  if (text.length > EXPRESSION_MAX_CHARS) return `longer than ${EXPRESSION_MAX_CHARS} characters`
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(text)
  } catch (error) {
    return `not a CEL expression: ${error instanceof Error ? error.message.replace('<input>:', 'at ') : 'unreadable'}`
  }
  const names: Names = { free: new Set(), functions: new Set() }
  collect(parsed.expr, new Set(), names)
  const fault = firstUnknown(names, variables)
  if (fault !== null) return fault
  const product = productIn(parsed.expr, null)
  if (product !== null)
    return `goes through ${product.inner} again for each element of ${product.outer}: the inner comprehension must go through the outer variable`
  const paths = argumentPaths(parsed.expr)
  addMarks(parsed.expr)
  const evaluate = plan(meteredEnv, parsed)
  return {
    mentions: new Set(variables.filter((name) => names.free.has(name))),
    test(bindings, budget = new CostBudget(), missing = undefined) {
      const result = withinBudget(() => evaluate(bindings), budget)
      if (result === undefined) return 'budget'
      if (missing !== undefined && isCelError(result)) reportMissing(paths, bindings.args, result, missing)
      return isCelError(result) || typeof result !== 'boolean' ? 'error' : result
    },
  }
}

interface Names {
  readonly free: Set<string>
  readonly functions: Set<string>
}

/** Two variables of the caller, of which one is traversed for each element of the other. */
interface Product {
  readonly outer: string
  readonly inner: string
}

/**
 * Returns a comprehension over caller data that contains another one over all of some caller data; null without one. Its cost would be the product
 * of two sizes chosen by the caller. An inner one over the outer variable visits each part once. `outer`: the enclosing variable.
 */
function productIn(expr: Expr | undefined, outer: string | null): Product | null {
  if (expr === undefined) return null
  const kind = expr.exprKind
  const anyOf = (...parts: readonly (Expr | undefined)[]) => firstProduct(parts, outer)
  switch (kind.case) {
    case 'selectExpr':
      return anyOf(kind.value.operand)
    case 'callExpr':
      return anyOf(kind.value.target, ...kind.value.args)
    case 'listExpr':
      return anyOf(...kind.value.elements)
    case 'structExpr':
      return anyOf(
        ...kind.value.entries.flatMap(({ keyKind, value }) => [
          value,
          keyKind.case === 'mapKey' ? keyKind.value : undefined,
        ]),
      )
    case 'comprehensionExpr': {
      const { iterRange, loopCondition, loopStep, result } = kind.value
      const names: Names = { free: new Set(), functions: new Set() }
      collect(iterRange, new Set(), names)
      const inner = CALLER_VARIABLES.find((name) => names.free.has(name)) ?? null
      if (inner !== null && outer !== null) return { inner, outer }
      return anyOf(iterRange, result) ?? firstProduct([loopCondition, loopStep], outer ?? inner)
    }
    default:
      return null
  }
}

function firstProduct(parts: readonly (Expr | undefined)[], outer: string | null): Product | null {
  for (const part of parts) {
    const product = productIn(part, outer)
    if (product !== null) return product
  }
  return null
}

/** Walks the tree; names bound by a comprehension are not free inside it. */
function collect(expr: Expr | undefined, bound: ReadonlySet<string>, names: Names): void {
  if (expr === undefined) return
  const kind = expr.exprKind
  switch (kind.case) {
    case 'identExpr': {
      const name = kind.value.name.replace(/^\./, '')
      if (!bound.has(name)) names.free.add(name)
      return
    }
    case 'selectExpr':
      collect(kind.value.operand, bound, names)
      return
    case 'callExpr':
      names.functions.add(kind.value.function)
      collect(kind.value.target, bound, names)
      for (const arg of kind.value.args) collect(arg, bound, names)
      return
    case 'listExpr':
      for (const element of kind.value.elements) collect(element, bound, names)
      return
    case 'structExpr':
      for (const entry of kind.value.entries) {
        if (entry.keyKind.case === 'mapKey') collect(entry.keyKind.value, bound, names)
        collect(entry.value, bound, names)
      }
      return
    case 'comprehensionExpr': {
      const it = kind.value
      collect(it.iterRange, bound, names)
      collect(it.accuInit, bound, names)
      const inner = new Set([...bound, it.iterVar, it.iterVar2, it.accuVar])
      for (const part of [it.loopCondition, it.loopStep, it.result]) collect(part, inner, names)
      return
    }
    default:
      return
  }
}

function firstUnknown(names: Names, variables: readonly string[]): string | null {
  for (const name of names.free) {
    if (variables.includes(name) || TYPE_NAMES.includes(name)) continue
    const guess = closest(name, variables)
    return `unknown variable "${name}"${guess === null ? `: known are ${variables.join(', ')}` : `, did you mean "${guess}"?`}`
  }
  for (const name of names.functions) {
    if (!isOperator(name) && !isFunction(name)) return `unknown function "${name}"`
  }
  return null
}

/** Operators (`_==_`, `!_`, `@in`) contain characters that no function name has; some are compiled without a look-up. */
function isOperator(name: string): boolean {
  return !/^[A-Za-z][A-Za-z0-9_.]*$/.test(name)
}
