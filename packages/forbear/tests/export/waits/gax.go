// Read objects of the bucket b, all at the same time, each with gax.Invoke. Arguments: the URL of a cloud, how many.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/googleapis/gax-go/v2"
)

var failed = errors.New("failed")

type retryer struct{ backoff gax.Backoff }

// Retry waits as cloud.google.com/go/internal.Retry does, which runs the calls of the Cloud Storage client.
func (r *retryer) Retry(err error) (time.Duration, bool) { return r.backoff.Pause(), err == failed }

func newRetryer() gax.Retryer {
	return &retryer{BACKOFF}
}

func main() {
	calls, _ := strconv.Atoi(os.Args[2])
	var group sync.WaitGroup
	for each := 0; each < calls; each++ {
		group.Add(1)
		go func(url string) {
			defer group.Done()
			read := func(ctx context.Context, settings gax.CallSettings) error {
				response, err := http.Get(url)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				if response.StatusCode != http.StatusOK {
					return failed
				}
				return nil
			}
			if err := gax.Invoke(context.Background(), read, gax.WithRetry(newRetryer)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}(fmt.Sprintf("%s/storage/v1/b/b/o/o%04d", os.Args[1], each))
	}
	group.Wait()
}
