/** The cookie that ties a flow to the browser that began it. */
export interface BrowserCookie {
  /** What the browser has; null: nothing of ours. */
  read(header: string | undefined): string | null
  /** The value of `Set-Cookie`. */
  write(browser: string): string
}

/** 32 bytes in base64url. */
const VALUE = /^[A-Za-z0-9_-]{43}$/

/** Over TLS no other host can set it (prefix `__Host-`); plain HTTP is for the machine itself. */
export function browserCookie({
  isSecure,
  ttlSeconds,
}: {
  readonly isSecure: boolean
  readonly ttlSeconds: number
}): BrowserCookie {
  const name = `${isSecure ? '__Host-' : ''}plat-connect`
  // Lax: the browser shall bring it when an authorization server sends it back, and with no form of another site.
  const attributes = `; Path=/; HttpOnly; SameSite=Lax; Max-Age=${ttlSeconds}${isSecure ? '; Secure' : ''}`
  return {
    read(header = '') {
      const found = header.split(/;\s*/).find((pair) => pair.startsWith(`${name}=`))
      const value = found?.slice(name.length + 1) ?? ''
      return VALUE.test(value) ? value : null
    },
    write: (browser) => `${name}=${browser}${attributes}`,
  }
}
