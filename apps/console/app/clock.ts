import { useEffect, useState } from 'preact/hooks'

/** Milliseconds since 1970. */
export function now(): number {
  return Date.now()
}

/** Calls back once. Returns a function that cancels it. */
export function after(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms)
  return () => clearTimeout(timer)
}

export function jitter(): number {
  return Math.random()
}

/** The time, which renders the component again every `everyMs`. */
export function useNow(everyMs: number): number {
  const [at, setAt] = useState(now)
  useEffect(() => {
    const timer = setInterval(() => setAt(now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return at
}
