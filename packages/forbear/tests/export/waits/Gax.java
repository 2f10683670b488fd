// Read objects of the bucket b, sixty at the same time, each with gax. Arguments: the URL of a cloud, how many.
import com.google.api.core.NanoClock;
import com.google.api.gax.retrying.BasicResultRetryAlgorithm;
import com.google.api.gax.retrying.DirectRetryingExecutor;
import com.google.api.gax.retrying.ExponentialRetryAlgorithm;
import com.google.api.gax.retrying.RetryAlgorithm;
import com.google.api.gax.retrying.RetrySettings;
import com.google.api.gax.retrying.RetryingFuture;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URL;
import org.threeten.bp.Duration;

public class Gax {
  // The executor and the algorithms that google-cloud-core's RetryHelper puts together for the Cloud Storage client.
  static void read(String url) {
    SETTINGS
    RetryAlgorithm<Integer> algorithm =
        new RetryAlgorithm<>(
            new BasicResultRetryAlgorithm<Integer>(),
            new ExponentialRetryAlgorithm(retrySettings, NanoClock.getDefaultClock()));
    DirectRetryingExecutor<Integer> executor = new DirectRetryingExecutor<>(algorithm);
    RetryingFuture<Integer> future = executor.createFuture(() -> status(url));
    executor.submit(future);
    try {
      future.get();
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
  }

  static int status(String url) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
    try {
      if (connection.getResponseCode() != 200) {
        throw new IOException("failed");
      }
      return 200;
    } finally {
      connection.disconnect();
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    int calls = Integer.parseInt(arguments[1]);
    Thread[] threads = new Thread[Math.min(calls, 60)];
    for (int number = 0; number < threads.length; number++) {
      int first = number;
      threads[number] =
          new Thread(
              () -> {
                for (int each = first; each < calls; each += threads.length) {
                  read(String.format("%s/storage/v1/b/b/o/o%04d", arguments[0], each));
                }
              });
      threads[number].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }
}
