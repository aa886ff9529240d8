import {
  type CelEnv,
  type CelFunc,
  type CelInput,
  type CelList,
  celEnv,
  celList,
  isCelList,
  isCelMap,
  type parse,
} from '@bufbuild/cel'

export type Expr = NonNullable<ReturnType<typeof parse>['expr']>

/**
 * Cost limit of one evaluation. A unit is about ten nanoseconds: a step of a comprehension costs `STEP_COST` and three for each node of its body,
 * and a function the data that it touches. Kubernetes' limit for one call of an expression has the same size.
 */
export const EVALUATION_BUDGET = 1_000_000
/** Cost limit of all evaluations over one message, including the creation of variables and Cedar: a policy may have many expressions. */
const MESSAGE_BUDGET = 2_000_000

const STEP_COST = 20
const NODE_COST = 3
/** Characters of a string that are compared or copied per unit. */
const CHARS_PER_UNIT = 16
/** Units for compiling a pattern, plus those of each of its characters. */
const PATTERN_COST = 100
const PATTERN_CHAR_COST = 50

/** An evaluation, or the creation of its variables, would exceed the budget. */
export class BudgetExceededError extends Error {}

/** Remaining budget for the evaluations over one message, in units of about ten nanoseconds. */
export class CostBudget {
  #left = MESSAGE_BUDGET

  get left(): number {
    return this.#left
  }

  /** Throws BudgetExceededError when less is left. */
  spend(units: number): void {
    this.#left -= units
    if (this.#left < 0) throw new BudgetExceededError('the message exceeded the cost budget of its expressions')
  }
}

/** Remaining units of the running evaluation. Evaluations are synchronous and never nest, so one meter serves the process. */
let left = 0

/** Runs one evaluation within the budget; returns undefined when it exceeds it. The evaluator converts exceptions to error values. */
export function withinBudget<T>(evaluate: () => T, budget: CostBudget): T | undefined {
  const most = Math.min(EVALUATION_BUDGET, budget.left)
  left = most
  // Each error value is an Error: without a stack it costs a tenth.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  let result: T
  try {
    result = evaluate()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  if (left < 0) return undefined
  budget.spend(most - left)
  return result
}

function charge(units: number): void {
  left -= units
  if (left < 0) throw new BudgetExceededError('the expression exceeded its cost budget')
}

type Value = Parameters<CelFunc['call']>[2][number]

/** Returns the units for traversing a value, counted up to the budget. */
function weigh(value: unknown): number {
  if (typeof value === 'string') return 1 + value.length / CHARS_PER_UNIT
  if (value instanceof Uint8Array) return 1 + value.length
  let units = 1
  if (isCelList(value)) {
    for (const item of value) {
      units += weigh(item)
      if (units > left) break
    }
  } else if (isCelMap(value)) {
    for (const [key, item] of value) {
      units += weigh(key) + weigh(item)
      if (units > left) break
    }
  }
  return units
}

function charsOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0
}

type Cost = (one: unknown, other: unknown) => number

const compared: Cost = (one, other) => Math.min(weigh(one), weigh(other))
const shorter: Cost = (one, other) => 1 + Math.min(charsOf(one), charsOf(other)) / CHARS_PER_UNIT
/** `BigInt` of a text takes more than linear time. */
const wholeNumber: Cost = (text) => 1 + charsOf(text) + charsOf(text) ** 2 / 1000
const converted: Cost = (value) => 1 + charsOf(value) / 4

const COSTS: ReadonlyMap<string, Cost> = new Map<string, Cost>([
  ['_==_', compared],
  ['_!=_', compared],
  ...['_<_', '_<=_', '_>_', '_>=_', 'startsWith', 'endsWith'].map((name): [string, Cost] => [name, shorter]),
  // A search may compare the whole pattern at each position.
  ['contains', (text, part) => 1 + (charsOf(text) * (1 + charsOf(part)) + charsOf(part)) / (2 * CHARS_PER_UNIT)],
  ['matches', (text, pattern) => PATTERN_COST + charsOf(pattern) * (PATTERN_CHAR_COST + charsOf(text) / 4)],
  ['@in', (item, range) => (isCelMap(range) ? mapCost(item, range.size) : listCost(item, range))],
  ['size', (value) => (typeof value === 'string' ? 1 + value.length : 1)],
  ['_+_', (one, other) => 1 + (charsOf(one) + charsOf(other)) / CHARS_PER_UNIT + (isCelList(other) ? other.size : 0)],
  ['int', wholeNumber],
  ['uint', wholeNumber],
  ...['double', 'bool', 'bytes', 'string', 'timestamp', 'duration'].map((name): [string, Cost] => [name, converted]),
])

/** A number is compared with all keys. */
function mapCost(key: unknown, size: number): number {
  return typeof key === 'string' ? 1 + key.length / CHARS_PER_UNIT : 1 + size
}

function listCost(item: unknown, range: unknown): number {
  if (!isCelList(range)) return 1
  return typeof item === 'object' ? weigh(range) : range.size * 2 + (range.size * charsOf(item)) / CHARS_PER_UNIT
}

/** Lists created by appending: the shared array, of which each list shows its own first elements. */
const appended = new WeakMap<CelList, CelInput[]>()

/** Appends in constant time per element, where the library nests a list for each element of `map` and `filter`. */
function append(one: CelList, other: CelList): CelList {
  const shared = appended.get(one)
  if (shared === undefined || shared.length !== one.size) charge(one.size)
  const items: CelInput[] = shared?.length === one.size ? shared : [...one]
  for (const item of other) items.push(item)
  const { length } = items
  const list: CelList = Object.create(celList(items), {
    size: { value: length },
    values: { value: () => items.slice(0, length).values() },
  })
  appended.set(list, items)
  return list
}

type Funcs = NonNullable<ReturnType<CelEnv['funcs']['find']>>

/** Returns a function that charges for a call before making it. An exception of `charge` ends the evaluation: it is not an error value. */
function metered(name: string, func: Funcs): Funcs {
  const cost = COSTS.get(name)
  return Object.create(func, {
    call: {
      value(id: number, target: Value | undefined, args: Value[]) {
        const isMethod = target !== undefined
        const one = isMethod ? target : args[0]
        const other = isMethod ? args[0] : args[1]
        charge(cost === undefined ? 1 : cost(one, other))
        if (name === '_+_' && isCelList(one) && isCelList(other)) return append(one, other)
        return func.call(id, target, args)
      },
    },
  })
}

const env: CelEnv = celEnv({})

/** Functions that charge for traversing a range, or for a computed look-up, and return their first argument. */
const MARKS: ReadonlyMap<string, (value: unknown, weight: unknown) => number> = new Map([
  ['@range', (value) => sizeOf(value)],
  ['@lookup', (value) => 1 + (isCelMap(value) ? value.size / 4 : 0)],
  ['@step', (_value, weight) => STEP_COST + Number(weight)],
])

function sizeOf(value: unknown): number {
  return isCelList(value) || isCelMap(value) ? value.size : 1
}

const funcs = new Map<string, Funcs>()

function find(name: string): Funcs | undefined {
  const known = funcs.get(name)
  if (known !== undefined) return known
  const mark = MARKS.get(name)
  const func = mark === undefined ? env.funcs.find(name) : env.funcs.find('dyn')
  if (func === undefined) return undefined
  const made: Funcs =
    mark === undefined
      ? metered(name, func)
      : Object.create(func, {
          call: {
            value(_id: number, _target: Value | undefined, [value, weight]: Value[]) {
              charge(mark(value, weight))
              return value
            },
          },
        })
  funcs.set(name, made)
  return made
}

/** Environment with charged evaluations. */
export const meteredEnv: CelEnv = Object.create(env, { funcs: { value: { find } } })

/** Returns whether CEL has a function of this name. */
export function isFunction(name: string): boolean {
  return env.funcs.find(name) !== undefined
}

/** Inserts marks around ranges, steps and computed look-ups, in place. Returns the number of nodes that run once per step. */
export function addMarks(expr: Expr | undefined): number {
  if (expr === undefined) return 0
  const kind = expr.exprKind
  switch (kind.case) {
    case 'selectExpr':
      return 1 + addMarks(kind.value.operand)
    case 'callExpr': {
      const { args, target } = kind.value
      const nodes = args.reduce((sum, arg) => sum + addMarks(arg), 1 + addMarks(target))
      const [operand, key] = args
      if (kind.value.function === '_[_]' && operand !== undefined && key?.exprKind.case !== 'constExpr')
        args[0] = marked('@lookup', operand)
      return nodes
    }
    case 'listExpr':
      return kind.value.elements.reduce((sum, element) => sum + addMarks(element), 1)
    case 'structExpr':
      return kind.value.entries.reduce((sum, { keyKind, value }) => {
        return sum + addMarks(value) + (keyKind.case === 'mapKey' ? addMarks(keyKind.value) : 0)
      }, 1)
    case 'comprehensionExpr': {
      const it = kind.value
      const outside = addMarks(it.iterRange) + addMarks(it.accuInit) + addMarks(it.result)
      const nodes = addMarks(it.loopCondition) + addMarks(it.loopStep)
      if (it.iterRange !== undefined) it.iterRange = marked('@range', it.iterRange)
      if (it.loopCondition !== undefined) it.loopCondition = marked('@step', it.loopCondition, nodes * NODE_COST)
      return 1 + outside
    }
    default:
      return 1
  }
}

/** `name(expr, weight)`. */
function marked(name: string, expr: Expr, weight = 0): Expr {
  const { $typeName, id } = expr
  const constant: Expr = {
    $typeName,
    id,
    exprKind: {
      case: 'constExpr',
      value: { $typeName: 'cel.expr.Constant', constantKind: { case: 'doubleValue', value: weight } },
    },
  }
  return {
    $typeName,
    id,
    exprKind: { case: 'callExpr', value: { $typeName: 'cel.expr.Expr.Call', function: name, args: [expr, constant] } },
  }
}
