/**
 * Returns whether a value that may come at once has to be awaited. An `await` of a plain value costs a turn of the queue of microtasks, which hot
 * paths save: `isPromise(value) ? await value : value`.
 */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise
}

/**
 * Calls `next` with a value: at once when it is a plain one, which allocates nothing, otherwise when the promise resolves. `a` and `b` are passed
 * on, so that `next` need not be a closure.
 */
export function whenReady<T, R>(value: T | Promise<T>, next: (value: T) => R): R | Promise<Awaited<R>>
export function whenReady<T, R, A>(value: T | Promise<T>, next: (value: T, a: A) => R, a: A): R | Promise<Awaited<R>>
export function whenReady<T, R, A, B>(
  value: T | Promise<T>,
  next: (value: T, a: A, b: B) => R,
  a: A,
  b: B,
): R | Promise<Awaited<R>>
export function whenReady<T>(
  value: T | Promise<T>,
  next: (value: T, a: unknown, b: unknown) => unknown,
  a?: unknown,
  b?: unknown,
): unknown {
  return isPromise(value) ? later(value, next, a, b) : next(value, a, b)
}

/** Apart, because V8 allocates the variables of a closure when the function that contains it is called. */
function later<T>(
  value: Promise<T>,
  next: (value: T, a: unknown, b: unknown) => unknown,
  a: unknown,
  b: unknown,
): Promise<unknown> {
  return value.then((late) => next(late, a, b))
}

/** Calls `next` with all values: at once when they are plain ones, otherwise when all promises resolve. */
export function whenAllReady<T, R>(
  values: readonly (T | Promise<T>)[],
  next: (values: readonly T[]) => R,
): R | Promise<R> {
  return values.every(isPlain) ? next(values) : Promise.all(values).then(next)
}

function isPlain<T>(value: T | Promise<T>): value is T {
  return !isPromise(value)
}
